/** What is drawn: the layout and the states of a job. What has not changed stays the same object: it is not redrawn. */

import type { Edge as FlowEdge, Node as FlowNode } from '@xyflow/react'

import type { NodeSpec, NodeState } from './definition'
import type { Layout, PlacedEdge, PlacedNode } from './layout'

export type States = ReadonlyMap<string, NodeState>
export type StepNode = FlowNode<{ spec: NodeSpec; state: NodeState | undefined }, 'step'>
export type WayEdge = FlowEdge<{ placed: PlacedEdge; way: Way }, 'way'>

/** Whether a job went along an edge, and whether it still may. */
export type Way = 'open' | 'passed' | 'passed-by'

export interface Picture {
  layout: Layout
  nodes: StepNode[]
  edges: WayEdge[]
}

export function draw(
  layout: Layout,
  states: States | undefined,
  selected: string | undefined,
  before?: Picture,
): Picture {
  const last = before?.layout === layout ? before : undefined
  return {
    layout,
    nodes: layout.nodes.map((placed, index) =>
      stepNode(placed, states?.get(placed.spec.node_id), placed.spec.node_id === selected, last?.nodes[index]),
    ),
    edges: layout.edges.map((placed, index) => wayEdge(placed, wayOf(placed, states), last?.edges[index])),
  }
}

function stepNode(placed: PlacedNode, state: NodeState | undefined, selected: boolean, last?: StepNode): StepNode {
  if (last && last.selected === selected && isSame(last.data.state, state)) return last
  const { spec, x, y, width, height } = placed
  return {
    id: spec.node_id,
    type: 'step',
    position: { x, y },
    // The sizes are known: nothing needs to be measured.
    width,
    height,
    measured: { width, height },
    data: { spec, state },
    selected,
    ariaRole: 'button',
    domAttributes: { 'aria-pressed': selected, 'aria-roledescription': undefined },
  }
}

function wayEdge(placed: PlacedEdge, way: Way, last?: WayEdge): WayEdge {
  if (last?.data?.way === way) return last
  const { id, source, target } = placed
  return { id, source, target, type: 'way', data: { placed, way }, selectable: false, focusable: false }
}

function wayOf({ source, target }: PlacedEdge, states: States | undefined): Way {
  const [from, to] = [states?.get(source), states?.get(target)]
  if (!from || !to || !hasEnded(from)) return 'open'
  if (from.status === 'skipped' || to.status === 'skipped') return 'passed-by'
  if (from.taken && !from.taken.includes(target)) return 'passed-by'
  return from.status === 'completed' ? 'passed' : 'open'
}

function hasEnded({ status }: NodeState): boolean {
  return status === 'completed' || status === 'failed' || status === 'skipped'
}

function isSame(one: NodeState | undefined, other: NodeState | undefined): boolean {
  if (one === other) return true
  if (!one || !other) return false
  return (
    one.status === other.status &&
    one.retry_count === other.retry_count &&
    one.children_total === other.children_total &&
    one.children_started === other.children_started &&
    one.children_done === other.children_done &&
    one.children_failed === other.children_failed
  )
}
