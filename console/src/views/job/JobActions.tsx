import { useQueryClient } from '@tanstack/react-query'
import { useState, type ReactNode } from 'react'
import { useNavigate } from 'react-router'

import { content, gateway, orchestrator } from '../../api/client'
import type { JobDetail, NodeDetail, NodeListItem } from '../../api/model'
import { Problem } from '../../api/problem'
import type { CompiledGraph } from '../../graph/definition'
import { useMay, useSession } from '../../session/session'
import { job as texts } from '../../texts/job'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'

interface Props {
  job: JobDetail
  graph: CompiledGraph | undefined
  nodes: readonly NodeListItem[]
}

/** What an operator can do with the job as it stands. */
export function JobActions({ job, graph, nodes }: Props) {
  if (!useMay('operate')) return null
  return (
    <div className="buttons">
      {canBeCancelled(job) && <Cancel job={job} />}
      {job.status === 'failed' && <Resume job={job} nodes={nodes} />}
      <SubmitAgain job={job} graph={graph} />
    </div>
  )
}

function canBeCancelled(job: JobDetail): boolean {
  return (job.status === 'pending' || job.status === 'running') && !job.cancel_requested_at
}

function Cancel({ job }: { job: JobDetail }) {
  const refresh = useRefresh(job.job_id)
  const params = { path: { job_id: job.job_id } }
  return (
    <Deed
      {...texts.cancel}
      dismiss={texts.cancel.keep}
      kind="danger"
      onConfirm={() => orchestrator.POST('/api/v1/jobs/{job_id}/cancel', { params }).then(refresh)}
    >
      <p>{texts.cancel.text}</p>
    </Deed>
  )
}

function Resume({ job, nodes }: { job: JobDetail; nodes: readonly NodeListItem[] }) {
  const resume = useResume(job.job_id)
  const failed = nodes.filter((node) => node.status === 'failed')
  return (
    <Deed {...texts.resume} kind="primary" onConfirm={() => resume(null)}>
      <p>{failed.length > 0 ? texts.resume.text : texts.resume.nothingFailed}</p>
      {failed.length > 0 && (
        <ul className="job-failed-nodes">
          {failed.map((node) => (
            <li key={node.node_id}>
              <code>{node.node_id}</code>
            </li>
          ))}
        </ul>
      )}
    </Deed>
  )
}

/** The same from one node on; only those that its edges have let run can be the first to run again. */
export function ResumeFrom({ job, node }: { job: JobDetail; node: NodeDetail }) {
  const resume = useResume(job.job_id)
  const may = useMay('operate')
  if (!may || job.status !== 'failed' || node.status === 'pending' || node.status === 'skipped') return null
  if (node.parent_node_id) return node.status === 'failed' ? <p className="soft">{texts.resume.ofChild}</p> : null
  return (
    <Deed
      button={texts.resume.fromButton}
      title={texts.resume.fromTitle(node.node_id)}
      kind="primary"
      onConfirm={() => resume(node.node_id)}
    >
      <p>{texts.resume.fromText}</p>
    </Deed>
  )
}

/** Work for an asset is asked for there; and where identical inputs are one job, there is no second one. */
function SubmitAgain({ job, graph }: { job: JobDetail; graph: CompiledGraph | undefined }) {
  if (!graph) return null
  if (job.asset_id) return <span className="soft">{texts.resubmit.ofAsset}</span>
  if (graph.job_id !== null) return <span className="soft">{texts.resubmit.ofInputs}</span>
  return <Resubmit job={job} />
}

function Resubmit({ job }: { job: JobDetail }) {
  const { caller } = useSession()
  const navigate = useNavigate()

  async function submit() {
    const { workflow_id, input_params, priority, correlation_id } = job
    // Without the key of the first, which would give the first job again.
    const body = { workflow_id, input_params, priority, correlation_id, submitted_by: caller?.name.slice(0, 64) }
    const made = await content(gateway.POST('/api/gateway/submit', { body }))
    if (made.job_id === job.job_id) throw new Problem(409, 'same_job', texts.resubmit.sameJob)
    void navigate(`/jobs/${made.job_id}`)
  }

  return (
    <Deed {...texts.resubmit} kind="primary" onConfirm={submit}>
      <p>{texts.resubmit.text}</p>
      {job.callback_url && <p className="soft">{texts.resubmit.noCallback}</p>}
    </Deed>
  )
}

interface DeedProps {
  button: string
  title: string
  dismiss?: string
  kind: 'primary' | 'danger'
  onConfirm: () => Promise<unknown>
  children: ReactNode
}

/** A button that asks before it does what it says. */
function Deed({ button, title, dismiss, kind, onConfirm, children }: DeedProps) {
  const [isAsked, setAsked] = useState(false)
  return (
    <>
      <Button kind={kind === 'danger' ? 'danger' : 'plain'} onClick={() => setAsked(true)}>
        {button}
      </Button>
      {isAsked && (
        <Dialog
          title={title}
          action={button}
          dismiss={dismiss}
          kind={kind}
          onConfirm={onConfirm}
          onClose={() => setAsked(false)}
        >
          {children}
        </Dialog>
      )}
    </>
  )
}

function useRefresh(jobId: string) {
  const client = useQueryClient()
  return async () => {
    await client.invalidateQueries({ queryKey: ['job', jobId] })
    void client.invalidateQueries({ queryKey: ['jobs'] })
  }
}

function useResume(jobId: string) {
  const refresh = useRefresh(jobId)
  return (nodeId: string | null) => {
    const params = { path: { job_id: jobId } }
    return orchestrator.POST('/api/v1/jobs/{job_id}/retry', { params, body: { node_id: nodeId } }).then(refresh)
  }
}
