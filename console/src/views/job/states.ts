/** How the nodes of a job stand, as the graph draws it. */

import type { NodeListItem } from '../../api/model'
import type { NodeState } from '../../graph/definition'

export function statesOf(nodes: readonly NodeListItem[]): Map<string, NodeState> {
  return new Map(nodes.map((node) => [node.node_id, stateOf(node)]))
}

function stateOf(node: NodeListItem): NodeState {
  const { status, children_total, children_started, children_done, children_failed, retry_count } = node
  const taken = node.node_type === 'conditional' ? chosen(node.output) : undefined
  return { status, children_total, children_started, children_done, children_failed, retry_count, taken }
}

/** The nodes that a condition has chosen. */
export function chosen(output: unknown): string[] | undefined {
  if (typeof output !== 'object' || output === null || !('next' in output)) return undefined
  return Array.isArray(output.next) ? output.next.map(String) : undefined
}
