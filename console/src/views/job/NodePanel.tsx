import type { ReactNode } from 'react'

import type { JobDetail, NodeDetail } from '../../api/model'
import type { NodeSpec } from '../../graph/definition'
import { Elapsed } from '../../parts/Elapsed'
import { graph as graphTexts } from '../../texts/graph'
import { job as texts } from '../../texts/job'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { count, duration } from '../../ui/format'
import { Notice } from '../../ui/notices'
import { Card, Json, KeyValues, Progress, StateBadge, Time } from '../../ui/parts'
import { Attempts } from './Attempts'
import { Children } from './Children'
import { ResumeFrom } from './JobActions'
import { Part } from './Part'
import { isUnknown, useNode } from './queries'
import { chosen } from './states'

interface Props {
  job: JobDetail
  nodeId: string
  /** What the workflow says of it; a child stands in no workflow. */
  spec: NodeSpec | undefined
  /** Shows another node, or with null the list of all. */
  onSelect: (nodeId: string | null) => void
}

export function NodePanel({ job, nodeId, spec, onSelect }: Props) {
  const node = useNode(job, nodeId)
  const back = <Button onClick={() => onSelect(null)}>{texts.allNodes}</Button>
  return (
    <Card title={<span className="mono">{nodeId}</span>} actions={back} className="job-panel">
      {isUnknown(node.error) ? (
        <Notice kind="warning">{texts.noSuchNode(nodeId)}</Notice>
      ) : (
        <Answer query={node}>
          {(known) => <Content job={job} node={known} spec={spec} onSelect={onSelect} />}
        </Answer>
      )}
    </Card>
  )
}

function Content({ job, node, spec, onSelect }: Omit<Props, 'nodeId'> & { node: NodeDetail }) {
  const parent = node.parent_node_id
  return (
    <div className="job-node" data-node={node.node_id} data-status={node.status}>
      {parent && (
        <Button onClick={() => onSelect(parent)}>{texts.childOf(parent)}</Button>
      )}
      {node.error_message && (
        <Notice kind="error">
          <span className="job-error">{node.error_message}</span>
        </Notice>
      )}
      <KeyValues items={factsOf(node)} />
      {spec && spec.branches.length > 0 && <Ways spec={spec} />}
      <HandlerProgress node={node} />
      <ResumeFrom job={job} node={node} />
      {node.node_type === 'fan_out' && <Children job={job} fanOut={node} onSelect={onSelect} />}
      {node.attempts.length > 0 && <Attempts node={node} />}
      {node.checkpoint && <Saved checkpoint={node.checkpoint} />}
      {node.input_params && Object.keys(node.input_params).length > 0 && (
        <Part title={texts.parameters}>
          <Json value={node.input_params} label={texts.parameters} />
        </Part>
      )}
      <Output node={node} />
    </div>
  )
}

/** What there is to say of a node; what it does not have is left out. */
function factsOf(node: NodeDetail): [string, ReactNode][] {
  const { nodeFacts: names } = texts
  const facts: [string, ReactNode][] = [
    [names.state, <StateBadge state={node.status} />],
    [names.type, graphTexts.types[node.node_type]],
    [names.index, node.fan_out_index],
    [names.key, node.fan_out_key],
    [names.handler, mono(node.handler)],
    [names.queue, mono(node.queue)],
    [names.worker, mono(node.worker_id)],
    [node.retry_count > 0 ? names.tried : names.ready, time(node.ready_at)],
    [names.dispatched, time(node.dispatched_at)],
    [names.started, time(node.started_at)],
    [names.ended, time(node.ended_at)],
    [names.waited, waited(node)],
    [names.ran, ran(node)],
    [names.deadline, time(node.deadline_at)],
    [names.retries, node.retry_count || null],
    [names.chosen, node.node_type === 'conditional' ? chosen(node.output)?.join(', ') : null],
  ]
  return facts.filter(([, value]) => value !== null && value !== undefined)
}

function mono(text: string | null | undefined): ReactNode {
  return text ? <span className="mono">{text}</span> : null
}

function time(at: string | null | undefined): ReactNode {
  return at ? <Time at={at} /> : null
}

function waited({ status, dispatched_at: sent, started_at: taken }: NodeDetail): ReactNode {
  return sent && (taken || status === 'dispatched') ? <Elapsed start={sent} end={taken} /> : null
}

/** Of a quick task nobody heard that it ran; it counts from when it was sent. */
function ran({ status, dispatched_at, started_at, ended_at }: NodeDetail): ReactNode {
  const began = started_at ?? dispatched_at
  return began && (ended_at || status === 'running') ? <Elapsed start={began} end={ended_at} /> : null
}

/** The conditions in full, for which there is no room in the graph. */
function Ways({ spec }: { spec: NodeSpec }) {
  return (
    <Part title={texts.ways}>
      <ol className="job-ways">
        {spec.branches.map(({ condition, next }, index) => (
          <li key={index}>
            <code>{condition ?? graphTexts.otherwise}</code> {texts.way(next.join(', '))}
          </li>
        ))}
      </ol>
    </Part>
  )
}

/** How far a handler is, as it tells itself. */
function HandlerProgress({ node: { progress, status } }: { node: NodeDetail }) {
  if (!progress || status !== 'running') return null
  const [done, total, left] = [Number(progress.done), Number(progress.total), Number(progress.eta_seconds)]
  return (
    <Part title={texts.handlerProgress}>
      {total > 0 && <Progress label={texts.handlerProgress} total={total} done={done} />}
      <p>
        {texts.ofTotal(count(done), count(total))} {progress.message ? String(progress.message) : ''}{' '}
        {left > 0 && <span className="soft">{texts.timeLeft(duration(left))}</span>}
      </p>
    </Part>
  )
}

function Saved({ checkpoint }: { checkpoint: NonNullable<NodeDetail['checkpoint']> }) {
  const { checkpointFacts: names } = texts
  const { phase, saved_at, artifacts = [], data = {} } = checkpoint
  return (
    <Part title={texts.checkpoint}>
      <KeyValues
        items={[
          [names.phase, phase],
          [names.saved, <Time at={saved_at} />],
          [names.artifacts, artifacts.join(', ')],
        ]}
      />
      {Object.keys(data).length > 0 && <Json value={data} label={texts.checkpointData} />}
    </Part>
  )
}

function Output({ node }: { node: NodeDetail }) {
  if (node.omitted?.includes('output')) return <Notice kind="warning">{texts.outputLost}</Notice>
  if (node.output === null || node.output === undefined) return null
  return (
    <Part title={texts.output}>
      <Json value={node.output} label={texts.output} />
    </Part>
  )
}
