/** A compiled workflow as the API gives it, and its edges. */

import type { NodeListItem, NodeStatus } from '../api/model'
import { graph as texts } from '../texts/graph'

export type NodeType = NodeListItem['node_type']

export interface TaskSpec {
  handler: string
  queue: string
  timeout_seconds: number
  retry: { max_attempts: number; backoff: string }
}

export interface NodeSpec {
  node_id: string
  type: NodeType
  next: readonly string[]
  join: 'all_of' | 'any_of'
  task: TaskSpec | null
  branches: readonly { condition: string | null; next: readonly string[] }[]
  max_parallel: number | null
  on_child_failure: 'fail' | 'continue'
  aggregation: string
  fan_out: string | null
}

export interface CompiledGraph {
  workflow_id: string
  name: string
  version: string
  description: string
  /** `params`: identical inputs are one job. */
  job_id: 'params' | null
  nodes: Readonly<Record<string, NodeSpec>>
}

/** How a node stands in a job. */
export interface NodeState {
  status: NodeStatus
  children_total: number
  children_started: number
  children_done: number
  children_failed: number
  retry_count: number
  /** Of a condition that was decided: the nodes on the way that was chosen. */
  taken?: readonly string[]
}

export interface Edge {
  source: string
  target: string
  /** On which condition it is followed. */
  condition: string | null
  /** Its target does not wait for it. */
  isOptional: boolean
}

/** Gives one edge for each pair of nodes; what several branches say of one stands together. */
export function edgesOf(graph: CompiledGraph): Edge[] {
  return Object.values(graph.nodes).flatMap((node) =>
    [...new Set(node.next)].map((target) => ({
      source: node.node_id,
      target,
      condition: conditionOf(node, target),
      isOptional: graph.nodes[target]?.join === 'any_of',
    })),
  )
}

function conditionOf(node: NodeSpec, target: string): string | null {
  const branches = node.branches.filter((branch) => branch.next.includes(target))
  if (branches.length === 0) return null
  return branches.map(({ condition }) => condition ?? texts.otherwise).join(texts.or)
}

/** A condition without what is the same in all of them, so that it fits beside an edge. */
export function inShort(condition: string): string {
  return condition
    .replace(/\bnodes\.\w+\.output\./g, '')
    .replace(/\binputs\./g, '')
    .replace(/(?<!\w)\((\w+)\)/g, '$1')
}
