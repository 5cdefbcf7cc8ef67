import { Link, useParams, useSearchParams } from 'react-router'

import type { components } from '../../api/gateway'
import { workflows as texts } from '../../texts/workflows'
import { Answer } from '../../ui/Answer'
import { GraphCard } from './GraphCard'
import { useWorkflow, useWorkflowVersion } from './questions'
import { RecentJobs } from './RecentJobs'
import { SubmitForm } from './SubmitForm'
import { Versions } from './Versions'
import './workflows.css'

type Workflow = components['schemas']['WorkflowInFull']

/** One workflow: what it is, what it has run, and a form to run it. What jobs ran stays when its file has gone. */
export default function WorkflowPage() {
  const workflowId = useParams().workflowId ?? ''
  const version = useSearchParams()[0].get('version')
  const query = useWorkflow(workflowId)
  const workflow = query.data
  const earlier = version !== null && version !== workflow?.workflow_hash ? version : null
  return (
    <div className="page">
      <Head workflowId={workflowId} workflow={workflow} />
      <Answer query={query}>{() => null}</Answer>
      <div className="workflow-parts">
        {earlier !== null ? (
          <EarlierGraph workflowId={workflowId} hash={earlier} />
        ) : (
          workflow && <GraphCard graph={workflow.graph} isCurrent />
        )}
        {workflow && (
          <SubmitForm
            key={workflowId}
            workflow={workflow}
            isOneJob={workflow.graph.job_id === 'params'}
          />
        )}
        <RecentJobs workflowId={workflowId} />
        {workflow && (
          <Versions
            versions={workflow.versions}
            current={workflow.workflow_hash}
            shown={version ?? workflow.workflow_hash}
          />
        )}
      </div>
    </div>
  )
}

function Head({ workflowId, workflow }: { workflowId: string; workflow: Workflow | undefined }) {
  return (
    <div className="workflow-head">
      <div className="page-head">
        <h1>{workflow?.name ?? workflowId}</h1>
        {workflow && (
          <>
            <span className="mono soft">{workflowId}</span>
            <span className="soft">{texts.version(workflow.version)}</span>
          </>
        )}
        <div className="buttons">
          <Link to="/workflows">{texts.all}</Link>
        </div>
      </div>
      {workflow?.description && <p className="soft">{workflow.description}</p>}
    </div>
  )
}

function EarlierGraph({ workflowId, hash }: { workflowId: string; hash: string }) {
  return (
    <Answer query={useWorkflowVersion(workflowId, hash)}>
      {({ graph }) => <GraphCard graph={graph} isCurrent={false} />}
    </Answer>
  )
}
