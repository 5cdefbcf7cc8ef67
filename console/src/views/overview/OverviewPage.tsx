import { overview as texts } from '../../texts/overview'
import { Attention } from './Attention'
import { Durations } from './Durations'
import { JobsByState } from './JobsByState'
import { Processes } from './Processes'
import { Queues } from './Queues'
import { Throughput } from './Throughput'
import './overview.css'

export default function OverviewPage() {
  return (
    <div className="page overview">
      <h1 className="visually-hidden">{texts.title}</h1>
      <JobsByState />
      <div className="overview-now">
        <Throughput />
        <Attention />
      </div>
      <div className="overview-details">
        <Queues />
        <Durations />
        <Processes />
      </div>
    </div>
  )
}
