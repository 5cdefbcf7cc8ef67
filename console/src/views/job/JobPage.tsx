import type { UseQueryResult } from '@tanstack/react-query'
import { Link, useParams } from 'react-router'

import type { JobDetail, NodeListItem } from '../../api/model'
import type { CompiledGraph } from '../../graph/definition'
import { job as texts } from '../../texts/job'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { Notice, ProblemNotice } from '../../ui/notices'
import { Tabs } from '../../ui/Tabs'
import { DocumentsTab } from './DocumentsTab'
import { EventsTab } from './EventsTab'
import { GraphTab } from './GraphTab'
import './job.css'
import { JobActions } from './JobActions'
import { JobEvents } from './JobEvents'
import { JobHead } from './JobHead'
import { isUnknown, useGraph, useJob, useNodes } from './queries'
import { TimelineTab } from './TimelineTab'

export default function JobPage() {
  const { jobId = '' } = useParams()
  const query = useJob(jobId)
  if (isUnknown(query.error)) return <NoSuchJob jobId={jobId} />
  return <Answer query={query}>{(job) => <Page job={job} isStale={query.isError} />}</Answer>
}

function NoSuchJob({ jobId }: { jobId: string }) {
  return (
    <Notice kind="warning">
      {texts.notFound(jobId)} <Link to="/jobs">{texts.toJobs}</Link>
    </Notice>
  )
}

/** What keeps the job from being read keeps its nodes from it too, and is told once. */
function Page({ job, isStale }: { job: JobDetail; isStale: boolean }) {
  const graph = useGraph(job.job_id)
  const { data: nodes = [], error, refetch } = useNodes(job.job_id)
  return (
    <div className="page job-page">
      <JobHead job={job} graph={graph.data} actions={<JobActions job={job} graph={graph.data} nodes={nodes} />} />
      {error && !isStale && <ProblemNotice error={error} onRetry={() => void refetch()} />}
      <WhatWentWrong job={job} nodes={nodes} />
      <JobEvents jobId={job.job_id} isOver={!!job.ended_at}>
        <Views job={job} graph={graph} nodes={nodes} />
      </JobEvents>
    </div>
  )
}

function WhatWentWrong({ job, nodes }: { job: JobDetail; nodes: readonly NodeListItem[] }) {
  const [, change] = useAddress()
  if (job.status === 'failed') {
    const failed = nodes.find((node) => node.status === 'failed')
    return (
      <Notice kind="error">
        <strong>{texts.failed}</strong>
        <span className="job-error">{job.error_message}</span>
        {failed && (
          <Button onClick={() => change({ tab: null, node: failed.node_id })}>{texts.showNode}</Button>
        )}
      </Notice>
    )
  }
  if (!job.cancel_requested_at || job.ended_at) return null
  return <Notice kind="info">{texts.cancelAsked(job.cancel_requested_by ?? texts.someone)}</Notice>
}

interface ViewsProps {
  job: JobDetail
  graph: UseQueryResult<CompiledGraph, Error>
  nodes: readonly NodeListItem[]
}

function Views({ job, graph, nodes }: ViewsProps) {
  const [parameters, change] = useAddress()
  const { tabs } = texts
  return (
    <div className="job-views">
      <Tabs
        label={tabs.label}
        selected={parameters.get('tab') ?? 'graph'}
        onSelect={(tab) => change({ tab: tab === 'graph' ? null : tab })}
        tabs={[
          { id: 'graph', name: tabs.graph, content: () => <GraphTab job={job} graph={graph} nodes={nodes} /> },
          { id: 'timeline', name: tabs.timeline, content: () => <TimelineTab job={job} /> },
          { id: 'events', name: tabs.events, content: () => <EventsTab job={job} /> },
          { id: 'documents', name: tabs.documents, content: () => <DocumentsTab job={job} /> },
        ]}
      />
    </div>
  )
}
