import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { NodeStatus } from '../../src/api/model'
import type { NodeState } from '../../src/graph/definition'
import { layOut } from '../../src/graph/layout'
import { draw, type States } from '../../src/graph/picture'
import { graphOf, node } from './workflows'

const LAYOUT = layOut(
  graphOf(
    node('start', 'start', ['if']),
    node('if', 'conditional', ['a', 'b']),
    node('a', 'task', ['end']),
    node('b', 'task', ['end']),
    node('end', 'end', [], { join: 'any_of' }),
  ),
)

const state = (status: NodeStatus, change: Partial<NodeState> = {}): NodeState => ({
  status,
  children_total: 0,
  children_started: 0,
  children_done: 0,
  children_failed: 0,
  retry_count: 0,
  ...change,
})

const statesOf = (states: Record<string, NodeState>): States => new Map(Object.entries(states))

const ways = (states: States | undefined) =>
  Object.fromEntries(draw(LAYOUT, states, undefined).edges.map(({ id, data }) => [id, data?.way]))

test('a workflow without a job is drawn open', () => {
  const picture = draw(LAYOUT, undefined, 'a')
  assert.deepEqual([...new Set(Object.values(ways(undefined)))], ['open'])
  assert.deepEqual(
    picture.nodes.filter(({ selected }) => selected).map(({ id }) => id),
    ['a'],
  )
  assert.ok(picture.nodes.every(({ data }) => data.state === undefined))
})

test('the ways that a job took, and passed by, are told apart', () => {
  const states = statesOf({
    start: state('completed'),
    if: state('completed', { taken: ['a'] }),
    a: state('completed'),
    b: state('skipped'),
    end: state('completed'),
  })
  assert.deepEqual(ways(states), {
    'start→if': 'passed',
    'if→a': 'passed',
    'if→b': 'passed-by',
    'a→end': 'passed',
    'b→end': 'passed-by',
  })
})

test('a way that was not chosen is passed by, before its node is skipped', () => {
  const chosen = statesOf({ if: state('completed', { taken: ['a'] }), a: state('ready'), b: state('pending') })
  assert.equal(ways(chosen)['if→b'], 'passed-by')
  assert.equal(ways(chosen)['if→a'], 'passed')
})

test('no way goes on from what runs or has failed', () => {
  for (const status of ['pending', 'ready', 'dispatched', 'running', 'failed'] as const) {
    assert.equal(ways(statesOf({ a: state(status), end: state('pending') }))['a→end'], 'open', status)
  }
})

test('what has not changed stays the same object', () => {
  const before = draw(LAYOUT, statesOf({ start: state('completed'), if: state('running') }), 'if')
  const same = draw(LAYOUT, statesOf({ start: state('completed'), if: state('running') }), 'if', before)
  same.nodes.forEach((each, place) => assert.ok(each === before.nodes[place]))
  same.edges.forEach((each, place) => assert.ok(each === before.edges[place]))
})

test('what has changed is drawn anew, and nothing else', () => {
  const running = { start: state('completed'), if: state('running') }
  const changes: [Record<string, NodeState>, string | undefined, string[]][] = [
    [{ ...running, if: state('completed') }, undefined, ['if']],
    [{ ...running, if: state('running', { retry_count: 1 }) }, undefined, ['if']],
    [{ ...running, a: state('pending') }, undefined, ['a']],
    [{ start: running.start }, undefined, ['if']],
    [running, 'b', ['b']],
  ]
  for (const name of ['children_total', 'children_started', 'children_done', 'children_failed']) {
    changes.push([{ ...running, if: state('running', { [name]: 1 }) }, undefined, ['if']])
  }
  const before = draw(LAYOUT, statesOf(running), undefined)
  for (const [states, selected, changed] of changes) {
    const after = draw(LAYOUT, statesOf(states), selected, before)
    const anew = after.nodes.filter((each, place) => each !== before.nodes[place]).map(({ id }) => id)
    assert.deepEqual(anew, changed)
  }
})

test('another layout is drawn anew', () => {
  const before = draw(LAYOUT, undefined, undefined)
  const other = layOut(graphOf(node('start', 'start', ['end']), node('end', 'end', [])))
  assert.deepEqual(
    draw(other, undefined, undefined, before).nodes.map(({ id }) => id),
    ['start', 'end'],
  )
})
