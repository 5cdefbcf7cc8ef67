import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'react-router'

import type { JobListItem, NodeListItem } from '../../api/model'
import { useEvery } from '../../live/live'
import { JobLink } from '../../parts/JobLink'
import { assets } from '../../texts/assets'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { between, duration, shortId } from '../../ui/format'
import { StateBadge } from '../../ui/parts'
import * as queries from './queries'

const texts = assets.lineage

/** A job of a chain; its nodes are asked for when someone wants to see them. */
export function ChainJob({ job }: { job: JobListItem }) {
  const [isOpen, setOpen] = useState(false)
  const took = job.ended_at ? between(job.started_at, job.ended_at) : null
  const purpose = job.purpose ?? 'process'
  const action = isOpen ? texts.hideNodes : texts.showNodes
  return (
    <div className="assets-chain-part">
      <p>
        <StateBadge state={job.status} /> <JobLink jobId={job.job_id} />
      </p>
      <p>
        {texts.purposes[purpose] ?? purpose} <span className="soft">{job.workflow_id}</span>
      </p>
      {took !== null && <p className="soft">{texts.took(duration(took))}</p>}
      {job.error_message && <p className="assets-error">{job.error_message}</p>}
      <Button
        kind="quiet"
        aria-expanded={isOpen}
        aria-label={texts.nodesOf(action, shortId(job.job_id))}
        onClick={() => setOpen(!isOpen)}
      >
        {action}
      </Button>
      {isOpen && <Nodes jobId={job.job_id} />}
    </div>
  )
}

function Nodes({ jobId }: { jobId: string }) {
  const found = useQuery({ ...queries.nodes(jobId), refetchInterval: useEvery() })
  return (
    <Answer query={found}>
      {({ items }) => (
        <ol className="assets-nodes" aria-label={texts.nodes}>
          {items.map((node) => (
            <Node key={node.node_id} node={node} />
          ))}
        </ol>
      )}
    </Answer>
  )
}

function Node({ node }: { node: NodeListItem }) {
  const search = new URLSearchParams({ node: node.node_id })
  return (
    <li>
      <Link to={`/jobs/${node.job_id}?${search}`}>{node.node_id}</Link> <StateBadge state={node.status} />
      {node.children_total > 0 && (
        <span className="soft">{texts.children(node.children_done, node.children_total)}</span>
      )}
    </li>
  )
}
