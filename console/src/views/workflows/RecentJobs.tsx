import { Link } from 'react-router'

import type { JobListItem } from '../../api/model'
import { Elapsed } from '../../parts/Elapsed'
import { JobLink } from '../../parts/JobLink'
import { jobs } from '../../texts/jobs'
import { shared } from '../../texts/shared'
import { workflows } from '../../texts/workflows'
import { Answer } from '../../ui/Answer'
import { Empty } from '../../ui/notices'
import { Card, StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { useRecentJobs } from './questions'

const texts = workflows.recent
const SHOWN = 10

const COLUMNS: Column<JobListItem>[] = [
  { name: jobs.columns.job, cell: (job) => <JobLink jobId={job.job_id} /> },
  { name: jobs.columns.status, cell: (job) => <StateBadge state={job.status} /> },
  { name: jobs.columns.by, cell: (job) => job.submitted_by ?? shared.none },
  { name: jobs.columns.created, cell: (job) => <Time at={job.created_at} /> },
  { name: jobs.columns.took, cell: (job) => <Elapsed start={job.started_at} end={job.ended_at} />, isNumber: true },
]

export function RecentJobs({ workflowId }: { workflowId: string }) {
  const all = `/jobs?${new URLSearchParams({ workflow: workflowId })}`
  return (
    <Card title={texts.title} flush actions={<Link to={all}>{texts.all}</Link>}>
      <Answer query={useRecentJobs(workflowId, SHOWN)}>
        {({ items }) =>
          items.length > 0 ? (
            <Table label={texts.list} columns={COLUMNS} rows={items} rowKey={(job) => job.job_id} />
          ) : (
            <Empty>{texts.none}</Empty>
          )
        }
      </Answer>
    </Card>
  )
}
