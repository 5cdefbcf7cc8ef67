import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Event, NodeTimes, Timeline } from '../../../src/api/model'
import { rangeOf, rowsOf, ticksOf, type Row } from '../../../src/views/job/timeline'

const START = Date.parse('2026-03-01T12:00:00Z')
const at = (second: number) => new Date(START + 1000 * second).toISOString()

const times = (change: Partial<NodeTimes>): NodeTimes => ({
  node_id: 'n',
  node_type: 'task',
  status: 'completed',
  retry_count: 0,
  ready_at: null,
  dispatched_at: null,
  started_at: null,
  ended_at: null,
  ...change,
})

const timeline = (items: NodeTimes[], ended: number | null = 60): Timeline => ({
  job_id: 'j',
  created_at: at(0),
  started_at: at(0),
  ended_at: ended === null ? null : at(ended),
  items,
})

const event = (second: number, event_type: Event['event_type'], change: Partial<Event> = {}): Event => ({
  event_type,
  node_id: 'n',
  created_at: at(second),
  data: {},
  ...change,
})

/** The spans of a row in seconds: `queued 1-3`. */
const told = (row: Row | undefined) =>
  row?.spans.map(({ kind, from, to }) => `${kind} ${(from - START) / 1000}-${to === null ? '' : (to - START) / 1000}`)

const toldOf = (change: Partial<NodeTimes>, events: Event[] = []) => told(rowsOf(timeline([times(change)]), events)[0])

test('a node waits to be sent, waits in its queue, and runs', () => {
  const done = { ready_at: at(1), dispatched_at: at(2), started_at: at(4), ended_at: at(9) }
  assert.deepEqual(toldOf(done), ['held 1-2', 'queued 2-4', 'run 4-9'])
  assert.deepEqual(toldOf({ ...done, dispatched_at: at(1) }), ['queued 1-4', 'run 4-9'])
})

test('what goes on has no end yet', () => {
  const running = { status: 'running' as const, ready_at: at(1), dispatched_at: at(1), started_at: at(4) }
  assert.deepEqual(toldOf(running), ['queued 1-4', 'run 4-'])
  assert.deepEqual(toldOf({ ...running, status: 'dispatched', started_at: null }), ['queued 1-'])
  assert.deepEqual(toldOf({ status: 'ready', ready_at: at(1) }), ['held 1-'])
})

test('of a quick task nobody heard that it ran, and what no worker takes has only its end', () => {
  assert.deepEqual(toldOf({ ready_at: at(1), dispatched_at: at(1), ended_at: at(2) }), ['run 1-2'])
  assert.deepEqual(toldOf({ node_type: 'start', ended_at: at(1) }), ['run 1-1'])
})

test('nodes that have not begun have no row, and the others stay in their order', () => {
  const items = [
    times({ node_id: 'b', ended_at: at(1) }),
    times({ node_id: 'c', status: 'pending' }),
    times({ ended_at: at(2) }),
  ]
  assert.deepEqual(
    rowsOf(timeline(items), []).map((row) => row.times.node_id),
    ['b', 'n'],
  )
})

test('the log tells of earlier tries, and the row of a node of what the log does not tell yet', () => {
  const events = [
    event(1, 'node_ready'),
    event(1, 'node_dispatched'),
    event(2, 'node_running'),
    event(3, 'node_failed'),
    event(3, 'node_retry'),
    event(5, 'node_dispatched'),
    event(6, 'node_running'),
  ]
  const last = { retry_count: 1, ready_at: at(3), dispatched_at: at(5), started_at: at(6), ended_at: at(8) }
  const [row] = rowsOf(timeline([times(last)]), events)
  assert.deepEqual(told(row), ['queued 1-2', 'run 2-3', 'backoff 3-5', 'queued 5-6', 'run 6-8'])
  assert.deepEqual(
    row?.tries.map(({ outcome }) => outcome),
    ['failed', 'completed'],
  )
})

test('an end that is older than a try is not the end of that try', () => {
  const resumed = [event(10, 'node_ready'), event(10, 'node_dispatched')]
  const before = { status: 'failed' as const, dispatched_at: at(1), started_at: at(2), ended_at: at(3) }
  assert.deepEqual(toldOf(before, resumed), ['queued 10-'])
})

test('times of different precision are compared as times', () => {
  const half = '2026-03-01T12:00:10.500000Z'
  const resumed = [event(0, 'node_ready', { created_at: half })]
  const [row] = rowsOf(timeline([times({ status: 'failed', ended_at: '2026-03-01T12:00:10Z' })]), resumed)
  assert.deepEqual(told(row), ['held 10.5-'])
})

test('a fan-out runs from when its first child was taken', () => {
  const children = { total: 4, first_dispatched_at: at(3), first_started_at: at(5), last_ended_at: at(8) }
  const fanOut = times({ node_type: 'fan_out', ready_at: at(1), started_at: at(2), ended_at: at(9) })
  const [row] = rowsOf(timeline([{ ...fanOut, children: children as unknown as NodeTimes['children'] }]), [])
  assert.deepEqual(told(row), ['held 1-2', 'queued 2-5', 'run 5-9'])
})

test('the axis goes from the beginning of the job to its end, or to now', () => {
  const rows = rowsOf(timeline([times({ ended_at: at(20) })]), [])
  assert.deepEqual(rangeOf(timeline([], 60), rows, START), { from: START, to: START + 60_000 })
  assert.deepEqual(rangeOf(timeline([], null), rows, START + 30_000), { from: START, to: START + 30_000 })
  assert.deepEqual(rangeOf(timeline([], 10), rows, START).to, START + 20_000, 'nothing is drawn beyond it')
  assert.ok(rangeOf(timeline([], 0), [], START).to > START, 'it has a length')
})

test('ticks are round, begin with the axis, stay on it, and do not crowd', () => {
  for (let length = 1; length < 400 * 86_400_000; length = Math.ceil(length * 1.3)) {
    for (const most of [1, 3, 8, 20]) {
      const ticks = ticksOf({ from: START, to: START + length }, most)
      assert.equal(ticks[0], 0)
      assert.ok(ticks.length <= most + 1 && ticks.length >= 1, `${ticks.length} of ${most} on ${length}`)
      assert.ok(ticks.at(-1)! <= length)
      const step = ticks[1] ?? 0
      ticks.forEach((tick, place) => assert.ok(Math.abs(tick - place * step) < 1e-6))
    }
  }
})
