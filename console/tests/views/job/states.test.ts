import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { NodeListItem } from '../../../src/api/model'
import { clock } from '../../../src/views/job/clock'
import { chosen, statesOf } from '../../../src/views/job/states'

const node = (change: Partial<NodeListItem>) => ({ node_id: 'n', status: 'completed', ...change }) as NodeListItem

test('of a condition that was decided, the ways that it chose are known', () => {
  const states = statesOf([
    node({ node_id: 'if', node_type: 'conditional', output: { next: ['a', 'b'] } }),
    node({ node_id: 'open', node_type: 'conditional', status: 'ready', output: null }),
    node({ node_id: 'task', node_type: 'task', output: { next: ['a'] } }),
  ])
  assert.deepEqual(states.get('if')?.taken, ['a', 'b'])
  assert.equal(states.get('open')?.taken, undefined)
  assert.equal(states.get('task')?.taken, undefined, 'a task may answer what it likes')
})

test('an output that says nothing of ways is no choice', () => {
  for (const output of [null, undefined, 'a', 1, [], {}, { next: 'a' }, { next: null }]) {
    assert.equal(chosen(output), undefined)
  }
  assert.deepEqual(chosen({ next: [] }), [])
})

test('the clock of the log shows milliseconds, in the time of the place', () => {
  assert.equal(clock('2026-03-01T12:00:00.045Z'), '17:30:00.045')
})
