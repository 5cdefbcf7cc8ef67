import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Problem, problemOf } from '../../src/api/problem'
import { json } from '../browser'

test('a problem is told as its document tells it', async () => {
  const errors = [{ loc: ['body', 'priority'], message: 'Input should be less than 11', type: 'less_than' }]
  const document = { code: 'invalid_input', detail: 'It is not valid.', hint: 'Mend it.', errors, status: 422 }
  const problem = await problemOf(json(document, 422))
  assert.ok(problem instanceof Problem && problem instanceof Error)
  assert.equal(problem.status, 422)
  assert.equal(problem.code, 'invalid_input')
  assert.equal(problem.message, 'It is not valid.')
  assert.equal(problem.hint, 'Mend it.')
  assert.deepEqual(
    problem.faults.map(({ loc }) => loc),
    [['body', 'priority']],
  )
  assert.equal(problem.isUnreachable, false)
})

test('what is no problem document is told by its status', async () => {
  const bodies = [
    '',
    '<html>502 Bad Gateway</html>',
    'null',
    '[]',
    '"no"',
    '17',
    '{"detail": [1], "code": 5, "errors": {}}',
  ]
  for (const body of bodies) {
    const problem = await problemOf(new Response(body, { status: 502 }))
    assert.equal(problem.status, 502, body)
    assert.equal(problem.code, '502', body)
    assert.equal(problem.message, 'The gateway answered with status 502.', body)
    assert.equal(problem.hint, null, body)
    assert.deepEqual(problem.faults, [], body)
  }
})

test('the gateway is unreachable where nothing answered, or a proxy in its place', async () => {
  assert.ok(new Problem(0, 'unreachable', 'No answer.').isUnreachable)
  const answered = (status: number, body: string) => problemOf(new Response(body, { status }))
  for (const status of [502, 503, 504]) {
    assert.ok((await answered(status, '<html>Bad Gateway</html>')).isUnreachable, String(status))
    assert.ok(!(await answered(status, '{"code": "unavailable"}')).isUnreachable, 'the gateway itself may say so')
  }
  for (const status of [401, 404, 429, 500]) assert.ok(!(await answered(status, '')).isUnreachable, String(status))
})

test('how long one is asked to wait is known, where it is told in seconds', async () => {
  const waits = async (value: string) =>
    (await problemOf(new Response('', { status: 429, headers: { 'Retry-After': value } }))).retryAfterSeconds
  assert.equal(await waits('17'), 17)
  assert.equal(await waits('Wed, 21 Oct 2026 07:28:00 GMT'), null)
  assert.equal((await problemOf(json({}, 429))).retryAfterSeconds, null)
})
