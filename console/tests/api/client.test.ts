import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import { content, gateway, getJson, onSignedOut, orchestrator } from '../../src/api/client'
import { answerWith, json, told } from '../browser'

const HEADER = 'X-Graticule-Console'
const refusal = (status: number) => () => json({ code: 'refused', detail: 'No.' }, status)

/** Counts how often the page is told that nobody is signed in any more. */
function signedOut(context: TestContext): () => number {
  let times = 0
  context.after(onSignedOut(() => (times += 1)))
  return () => times
}

test('the content of an answer is given, from either API', async (context) => {
  const asked = answerWith(context, () => json({ items: [1] }))
  const query = { status: 'failed' as const, limit: 1 }
  assert.deepEqual<unknown>(await content(gateway.GET('/api/status/jobs', { params: { query } })), { items: [1] })
  assert.deepEqual<unknown>(await content(orchestrator.GET('/api/v1/queues')), { items: [1] })
  assert.deepEqual(asked.map(told), [
    'GET /api/status/jobs?status=failed&limit=1',
    'GET /api/proxy/orchestrator/api/v1/queues',
  ])
})

test('changes carry the header that no other site can send, and reading does not', async (context) => {
  const asked = answerWith(context, () => new Response(null, { status: 204 }))
  const path = { asset_id: 'x' }
  await gateway.GET('/api/session')
  await getJson('/api/view/stac').catch(() => undefined)
  await gateway.POST('/api/session', { body: { api_key: 'key' } })
  await gateway.DELETE('/api/session')
  await gateway.PATCH('/api/assets/{asset_id}', { params: { path }, body: { url_mode: 'latest_only' } })
  await orchestrator.POST('/api/v1/clients/{client_id}/disable', { params: { path: { client_id: 'c' } } })
  assert.deepEqual(
    asked.map((request) => [request.method, request.headers.get(HEADER)]),
    [
      ['GET', null],
      ['GET', null],
      ['POST', '1'],
      ['DELETE', '1'],
      ['PATCH', '1'],
      ['POST', '1'],
    ],
  )
})

test('a refusal is thrown as a problem', async (context) => {
  answerWith(context, refusal(409))
  const expected = { name: 'Problem', status: 409, code: 'refused', message: 'No.' }
  await assert.rejects(gateway.GET('/api/status/jobs'), expected)
  await assert.rejects(orchestrator.GET('/api/v1/queues'), expected)
  await assert.rejects(getJson('/api/view/stac'), expected)
})

test('who is not known any more is signed out', async (context) => {
  answerWith(context, refusal(401))
  const times = signedOut(context)
  await assert.rejects(gateway.GET('/api/status/jobs'), { status: 401 })
  assert.equal(times(), 1)
  await assert.rejects(orchestrator.GET('/api/v1/queues'), { status: 401 })
  assert.equal(times(), 2)
  await assert.rejects(getJson('/api/view/stac'), { status: 401 })
  assert.equal(times(), 3)
})

test('a key that does not open, and any other refusal, signs nobody out', async (context) => {
  const times = signedOut(context)
  answerWith(context, refusal(401))
  await assert.rejects(gateway.POST('/api/session', { body: { api_key: 'wrong' } }), { status: 401 })
  for (const status of [400, 403, 404, 429, 500, 503]) {
    answerWith(context, refusal(status))
    await assert.rejects(gateway.GET('/api/status/jobs'), { status })
  }
  assert.equal(times(), 0)
})

test('who does not listen any more is not told', async (context) => {
  answerWith(context, refusal(401))
  let times = 0
  const stop = onSignedOut(() => (times += 1))
  stop()
  await assert.rejects(gateway.GET('/api/status/jobs'), { status: 401 })
  assert.equal(times, 0)
})

test('where nothing answers, the gateway is unreachable', async (context) => {
  answerWith(context, () => {
    throw new TypeError('fetch failed')
  })
  const expected = { name: 'Problem', status: 0, code: 'unreachable', isUnreachable: true }
  await assert.rejects(gateway.GET('/api/status/jobs'), expected)
  await assert.rejects(orchestrator.GET('/api/v1/queues'), expected)
  await assert.rejects(getJson('/api/view/stac'), expected)
})

test('what is given up by the page itself is no failure of the gateway', async (context) => {
  const abort = new AbortController()
  answerWith(context, () => {
    abort.abort()
    throw abort.signal.reason
  })
  await assert.rejects(getJson('/api/view/stac', abort.signal), { name: 'AbortError' })
})
