import { useMemo } from 'react'

import type { JobDetail, Timeline } from '../../api/model'
import { useNow } from '../../parts/Elapsed'
import { job as texts } from '../../texts/job'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Empty, Notice, ProblemNotice } from '../../ui/notices'
import { Chart } from './Chart'
import { useEventLog } from './JobEvents'
import { useTimeline } from './queries'
import { rangeOf, rowsOf } from './timeline'
import { TimelineTable } from './TimelineTable'

/** When each node waited and ran: bars on one axis of time, and the same as a table. */
export function TimelineTab({ job }: { job: JobDetail }) {
  return (
    <div className="job-timeline">
      <Answer query={useTimeline(job.job_id)}>{(timeline) => <Told job={job} timeline={timeline} />}</Answer>
    </div>
  )
}

function Told({ job, timeline }: { job: JobDetail; timeline: Timeline }) {
  const { events, isWhole, isReading, error, readMore } = useEventLog()
  const [, change] = useAddress()
  const now = useNow(!job.ended_at)
  const rows = useMemo(() => rowsOf(timeline, events), [timeline, events])
  return (
    <>
      {error !== null && <ProblemNotice error={error} onRetry={readMore} />}
      {!isWhole && !isReading && error === null && <Notice kind="info">{texts.timeline.partly}</Notice>}
      {rows.length === 0 ? (
        <Empty>{texts.timeline.empty}</Empty>
      ) : (
        <>
          <Chart
            rows={rows}
            range={rangeOf(timeline, rows, now)}
            now={job.ended_at ? null : now}
            onSelect={(node) => change({ tab: null, node, children: null })}
          />
          <TimelineTable rows={rows} />
        </>
      )}
    </>
  )
}
