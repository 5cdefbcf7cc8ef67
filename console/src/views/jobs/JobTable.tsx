import { Link } from 'react-router'

import type { JobListItem } from '../../api/model'
import { Elapsed } from '../../parts/Elapsed'
import { JobLink } from '../../parts/JobLink'
import { jobs as texts } from '../../texts/jobs'
import { shared } from '../../texts/shared'
import { shortId } from '../../ui/format'
import { StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'

const COLUMNS: Column<JobListItem>[] = [
  { name: texts.columns.job, cell: (job) => <JobLink jobId={job.job_id} /> },
  { name: texts.columns.workflow, cell: (job) => <WorkflowLink id={job.workflow_id} /> },
  { name: texts.columns.status, cell: (job) => <StateBadge state={job.status} /> },
  { name: texts.columns.by, cell: (job) => <Cut text={job.submitted_by} /> },
  { name: texts.columns.created, cell: (job) => <Time at={job.created_at} /> },
  { name: texts.columns.took, cell: (job) => <Elapsed start={job.started_at} end={job.ended_at} />, isNumber: true },
  { name: texts.columns.asset, cell: (job) => <AssetLink id={job.asset_id} /> },
  { name: texts.columns.error, cell: (job) => <Cut text={job.error_message} /> },
]

/** All columns have widths of their own, so that nothing moves when other jobs come. */
export function JobTable({ jobs }: { jobs: JobListItem[] }) {
  return (
    <div className="jobs-table">
      <Table label={texts.list} columns={COLUMNS} rows={jobs} rowKey={(job) => job.job_id} />
    </div>
  )
}

function WorkflowLink({ id }: { id: string }) {
  return (
    <Link className="truncate" to={`/workflows/${encodeURIComponent(id)}`} title={id}>
      {id}
    </Link>
  )
}

function AssetLink({ id }: { id: string | null | undefined }) {
  if (!id) return <>{shared.none}</>
  return (
    <Link className="mono truncate" to={`/assets/${id}`} title={id}>
      {shortId(id)}
    </Link>
  )
}

/** One line of a text; where the mouse rests, all of it. */
function Cut({ text }: { text: string | null | undefined }) {
  return text ? (
    <span className="truncate" title={text}>
      {text}
    </span>
  ) : (
    <>{shared.none}</>
  )
}
