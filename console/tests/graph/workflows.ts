/** Compiled workflows, as the API gives them. */

import type { CompiledGraph, NodeSpec, NodeType } from '../../src/graph/definition'
import type { Chance } from '../chance'

export function node(node_id: string, type: NodeType, next: string[], change: Partial<NodeSpec> = {}): NodeSpec {
  return {
    node_id,
    type,
    next,
    join: 'all_of',
    task: null,
    branches: [],
    max_parallel: null,
    on_child_failure: 'fail',
    aggregation: 'list',
    fan_out: null,
    ...change,
  }
}

export function graphOf(...nodes: NodeSpec[]): CompiledGraph {
  return {
    workflow_id: 'w',
    name: 'W',
    version: '1.0.0',
    description: '',
    job_id: null,
    nodes: Object.fromEntries(nodes.map((each) => [each.node_id, each])),
  }
}

/** A workflow with a start and an end, and steps between them that lead only to later ones. */
export function anyGraph(chance: Chance): CompiledGraph {
  const steps = Array.from({ length: chance.whole(1, 20) }, (_, place) => `step_${place}`)
  const later = (place: number) => [...steps.slice(place + 1), 'end']
  const led = new Set<string>()
  const nodes = steps.map((id, place) => {
    const next = Array.from({ length: chance.whole(1, 3) }, () => chance.one(later(place)))
    next.forEach((target) => led.add(target))
    const type = chance.one(['task', 'conditional', 'fan_out', 'fan_in'] as const)
    const branches = type === 'conditional' ? next.map((target) => ({ condition: 'a > 1', next: [target] })) : []
    return node(id, type, next, { branches, join: chance.one(['all_of', 'any_of'] as const) })
  })
  const first = steps.filter((id) => !led.has(id))
  return graphOf(node('start', 'start', first), ...chance.shuffled(nodes), node('end', 'end', []))
}
