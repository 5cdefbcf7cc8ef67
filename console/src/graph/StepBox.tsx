import { Handle, Position, type NodeProps } from '@xyflow/react'
import { memo } from 'react'

import { graph as texts } from '../texts/graph'
import { shared } from '../texts/shared'
import { count } from '../ui/format'
import { Progress, toneOf } from '../ui/parts'
import type { NodeSpec, NodeState } from './definition'
import { StateIcon, TypeIcon } from './icons'
import type { StepNode } from './picture'

/** One node. It is a button as a whole, which React Flow makes; its name is what is written here. */
export const StepBox = memo(function StepBox({ data: { spec, state }, width = 0, height = 0 }: NodeProps<StepNode>) {
  const tone = state ? `tone-${toneOf(state.status)}` : ''
  return (
    <div
      className={`graph-step ${spec.type} ${state?.status ?? 'defined'} ${tone}`}
      data-node={spec.node_id}
      data-status={state?.status}
    >
      <Handle type="target" position={Position.Top} isConnectable={false} />
      {spec.type === 'conditional' && <Hexagon width={width} height={height} />}
      <div className="graph-step-head">
        <TypeIcon type={spec.type} />
        <span className="graph-step-name" title={spec.node_id}>
          {spec.node_id}
        </span>
        <span className="visually-hidden">{texts.types[spec.type]}</span>
        {state && <StateIcon status={state.status} />}
      </div>
      {isTerminal(spec) ? <HiddenState state={state} /> : <Body spec={spec} state={state} />}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  )
})

function isTerminal(spec: NodeSpec): boolean {
  return spec.type === 'start' || spec.type === 'end'
}

/** The start and the end are too small for words: their state is a sign. */
function HiddenState({ state }: { state: NodeState | undefined }) {
  return state ? <span className="visually-hidden">{shared.states[state.status]}</span> : null
}

function Body({ spec, state }: { spec: NodeSpec; state: NodeState | undefined }) {
  return (
    <>
      <div className="graph-step-work" title={spec.task?.handler}>
        {workOf(spec)}
      </div>
      {state && state.children_total > 0 && <Children state={state} />}
      <div className="graph-step-state">
        <span>{state ? shared.states[state.status] : detailOf(spec)}</span>
        {state && state.retry_count > 0 && (
          <span className="graph-step-retries">{texts.retries(state.retry_count)}</span>
        )}
      </div>
    </>
  )
}

function workOf(spec: NodeSpec): string {
  if (spec.type === 'fan_out' && spec.task) return texts.each(spec.task.handler)
  if (spec.type === 'fan_in') return texts.gathers(spec.fan_out ?? '', spec.aggregation)
  return spec.task?.handler ?? texts.ways(spec.branches.length)
}

/** What the definition says further, where there is no state to tell. */
function detailOf(spec: NodeSpec): string {
  if (spec.type === 'fan_out' && spec.max_parallel) return texts.atOnce(count(spec.max_parallel))
  return spec.task?.queue ?? texts.types[spec.type]
}

function Children({ state }: { state: NodeState }) {
  const { children_total: total, children_done: done, children_failed: failed, children_started: started } = state
  const words = texts.done(count(done), count(total))
  return (
    <div className="graph-children">
      <div className="graph-children-bar" aria-hidden="true">
        <Progress label={words} total={total} done={done} failed={failed} running={started - done - failed} />
      </div>
      <span>{words}</span>
      {failed > 0 && <span className="graph-children-failed">{texts.failed(count(failed))}</span>}
    </div>
  )
}

function Hexagon({ width, height }: { width: number; height: number }) {
  const [left, right, bottom, middle] = [17, width - 17, height - 1, height / 2]
  const points = `${left},1 ${right},1 ${width - 1},${middle} ${right},${bottom} ${left},${bottom} 1,${middle}`
  return (
    <svg className="graph-hexagon" width={width} height={height} aria-hidden="true">
      <polygon points={points} />
    </svg>
  )
}
