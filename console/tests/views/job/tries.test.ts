import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Event } from '../../../src/api/model'
import { triesOf } from '../../../src/views/job/tries'

const at = (second: number) => `2026-03-01T12:00:${String(second).padStart(2, '0')}Z`

/** Events of one node, a second apart. */
const eventsOf = (...told: [Event['event_type'], Event['data']?, Partial<Event>?][]): Event[] =>
  told.map(([event_type, data = {}, more = {}], second) => ({
    event_type,
    node_id: 'n',
    created_at: at(second),
    data,
    ...more,
  }))

const triesOfN = (events: Event[]) => triesOf(events, () => true).get('n') ?? []

test('a try is told from when it was ready until its end', () => {
  const events = eventsOf(
    ['node_ready'],
    ['node_dispatched', {}, { task_id: 't1' }],
    ['node_running', { worker_id: 'w1' }, { task_id: 't1' }],
    ['node_progress', { done: 1 }],
    ['node_completed', {}, { task_id: 't1' }],
  )
  assert.deepEqual(triesOfN(events), [
    {
      taskId: 't1',
      isRetry: false,
      readyAt: at(0),
      dispatchedAt: at(1),
      startedAt: at(2),
      endedAt: at(4),
      outcome: 'completed',
      worker: 'w1',
      error: null,
    },
  ])
})

test('each failure ends a try, and a retry is told apart from a resumption', () => {
  const events = eventsOf(
    ['node_dispatched', {}, { task_id: 't1' }],
    ['node_failed', { error: 'one' }],
    ['node_retry', { retry_count: 1 }],
    ['node_dispatched', {}, { task_id: 't2' }],
    ['node_failed', { error: 'two' }],
    ['node_ready'],
    ['node_skipped'],
  )
  assert.deepEqual(
    triesOfN(events).map(({ taskId, isRetry, outcome, error }) => [taskId, isRetry, outcome, error]),
    [
      ['t1', false, 'failed', 'one'],
      ['t2', true, 'failed', 'two'],
      [null, false, 'skipped', null],
    ],
  )
})

test('what children did together is no try of their fan-out', () => {
  const together = { fan_out: true, children: 5, from: 0, to: 4 }
  const tries = triesOfN(
    eventsOf(['node_running', { children: 5 }], ['node_ready', together], ['node_dispatched', together]),
  )
  assert.deepEqual(
    tries.map(({ startedAt, dispatchedAt }) => [startedAt, dispatchedAt]),
    [[at(0), null]],
  )
})

test('the start and the end of a graph complete with their job', () => {
  const events: Event[] = [
    { event_type: 'job_created', created_at: at(0), data: { nodes_completed: ['start'] } },
    { event_type: 'job_completed', created_at: at(9), data: { nodes_completed: ['end', 'other_end'] } },
  ]
  const tries = triesOf(events, (id) => id !== 'other_end')
  assert.deepEqual(
    [...tries].map(([id, [only, ...more]]) => [id, only?.outcome, only?.endedAt, more.length]),
    [
      ['start', 'completed', at(0), 0],
      ['end', 'completed', at(9), 0],
    ],
  )
})

test('nodes that are not wanted, and events that are of no try, are left out', () => {
  const events = eventsOf(['node_ready', {}, { node_id: 'other' }], ['checkpoint_saved'], ['result_ignored'])
  assert.deepEqual(triesOf(events, (id) => id === 'n').get('other'), undefined)
  assert.deepEqual(triesOfN(events), [])
})
