import type { ReactNode } from 'react'
import { Link } from 'react-router'

import type { JobDetail } from '../../api/model'
import type { CompiledGraph } from '../../graph/definition'
import { Elapsed } from '../../parts/Elapsed'
import { job as texts } from '../../texts/job'
import { count } from '../../ui/format'
import { CopyButton, Progress, StateBadge, Time } from '../../ui/parts'

interface Props {
  job: JobDetail
  graph: CompiledGraph | undefined
  actions: ReactNode
}

export function JobHead({ job, graph, actions }: Props) {
  return (
    <header className="job-head">
      <div className="page-head">
        <h1>
          <WorkflowLink job={job} name={graph?.name} />{' '}
          <span className="soft">{texts.version(job.workflow_version)}</span>
        </h1>
        <span role="status" data-testid="job-state" data-status={job.status}>
          <StateBadge state={job.status} />
        </span>
        {actions}
      </div>
      <JobProgress job={job} />
      <Facts job={job} />
    </header>
  )
}

/** Leads to the version of the workflow that the job runs, which may not be the present one. */
function WorkflowLink({ job, name }: { job: JobDetail; name: string | undefined }) {
  const [id, version] = [job.workflow_id, job.workflow_hash].map(encodeURIComponent)
  return <Link to={`/workflows/${id}?version=${version}`}>{name ?? job.workflow_id}</Link>
}

function JobProgress({ job: { progress } }: { job: JobDetail }) {
  const total = progress.total + progress.children_total
  const done = progress.completed + progress.skipped + progress.children_done
  const failed = progress.failed + progress.children_failed
  const children = progress.children_started - progress.children_done - progress.children_failed
  const running = progress.running + progress.dispatched + children
  return (
    <div className="job-progress">
      <Progress label={texts.progress} total={total} done={done} failed={failed} running={running} />
      <span>{texts.percent(progress.percent)}</span>
      <span className="soft">
        {texts.steps(count(done), count(total))}
        {failed > 0 && texts.failedSteps(count(failed))}
      </span>
    </div>
  )
}

function Facts({ job }: { job: JobDetail }) {
  const { facts } = texts
  return (
    <dl className="job-facts">
      <Fact name={facts.id}>
        <span className="mono">{job.job_id}</span> <CopyButton text={job.job_id} label={texts.copyId} />
      </Fact>
      {job.submitted_by && <Fact name={facts.submittedBy}>{job.submitted_by}</Fact>}
      <Fact name={facts.created}>
        <Time at={job.created_at} />
      </Fact>
      <Fact name={facts.started}>
        <Time at={job.started_at} />
      </Fact>
      {job.ended_at && (
        <Fact name={facts.ended}>
          <Time at={job.ended_at} />
        </Fact>
      )}
      <Fact name={facts.duration}>
        <Elapsed start={job.started_at} end={job.ended_at} />
      </Fact>
      <Fact name={facts.priority}>{job.priority}</Fact>
      {job.purpose && <Fact name={facts.purpose}>{texts.purposes[job.purpose]}</Fact>}
      {job.asset_id && (
        <Fact name={facts.asset}>
          <Link to={`/assets/${encodeURIComponent(job.asset_id)}?open=${job.version_ordinal}`}>
            {texts.assetVersion(job.asset_id, job.version_ordinal ?? 0)}
          </Link>
        </Fact>
      )}
      {job.correlation_id && <Fact name={facts.correlation}>{job.correlation_id}</Fact>}
      {job.idempotency_key && <Fact name={facts.key}>{job.idempotency_key}</Fact>}
      {job.owner_id && !job.ended_at && <Fact name={facts.owner}>{job.owner_id}</Fact>}
    </dl>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
