import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Problem } from '../../src/api/problem'
import { LIVE_MS, pauseOf, POLL_MS, untilAnswered } from '../../src/live/every'

const answered = { state: { status: 'success', error: null } }
const failed = (error: Error) => ({ state: { status: 'error', error } })
const problem = (status: number, retryAfter: number | null = null) =>
  failed(new Problem(status, 'x', 'No.', null, [], retryAfter))

test('what is answered is asked for as often as all is', () => {
  for (const every of [POLL_MS, LIVE_MS]) assert.equal(pauseOf(answered, every), every)
})

test('what failed by no fault of its own is asked for soon', () => {
  for (const query of [problem(0), problem(500), problem(503), failed(new SyntaxError('cut'))]) {
    assert.equal(pauseOf(query, LIVE_MS), POLL_MS)
    assert.equal(untilAnswered(query), POLL_MS)
  }
})

test('what was refused is asked for no sooner than all is, and what never changes not at all', () => {
  for (const query of [problem(400), problem(403), problem(404), problem(422)]) {
    assert.equal(pauseOf(query, LIVE_MS), LIVE_MS)
    assert.equal(untilAnswered(query), false)
  }
  assert.equal(untilAnswered(answered), false)
})

test('who asked too often waits as long as the gateway says', () => {
  assert.equal(pauseOf(problem(429, 30), POLL_MS), 30_000)
  assert.equal(pauseOf(problem(429, 1), LIVE_MS), POLL_MS)
  assert.equal(pauseOf(problem(429), LIVE_MS), POLL_MS)
  assert.equal(untilAnswered(problem(429, 30)), 30_000)
})
