import { useMemo } from 'react'

import type { JobDetail } from '../../api/model'
import { job as texts } from '../../texts/job'
import { useAddress } from '../../ui/address'
import { Empty, Loading, Notice, ProblemNotice } from '../../ui/notices'
import { Chart } from './Chart'
import { useNow } from './Elapsed'
import { useEventLog } from './JobEvents'
import { useTimeline } from './queries'
import { rangeOf, rowsOf } from './timeline'
import { TimelineTable } from './TimelineTable'

/** When each node waited and ran: bars on one axis of time, and the same as a table. */
export function TimelineTab({ job }: { job: JobDetail }) {
  const { data: timeline, error, refetch } = useTimeline(job.job_id)
  const { events, isWhole, isReading } = useEventLog()
  const [, change] = useAddress()
  const now = useNow(!job.ended_at)
  const rows = useMemo(() => (timeline ? rowsOf(timeline, events) : []), [timeline, events])
  if (!timeline) return error ? <ProblemNotice error={error} onRetry={() => void refetch()} /> : <Loading />
  if (rows.length === 0) return <Empty>{texts.timeline.empty}</Empty>
  return (
    <div className="job-timeline">
      {!isWhole && !isReading && <Notice kind="info">{texts.timeline.partly}</Notice>}
      <Chart
        rows={rows}
        range={rangeOf(timeline, rows, now)}
        now={job.ended_at ? null : now}
        onSelect={(node) => change({ tab: null, node, children: null })}
      />
      <TimelineTable rows={rows} />
    </div>
  )
}
