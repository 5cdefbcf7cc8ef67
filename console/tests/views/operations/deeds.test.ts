import assert from 'node:assert/strict'
import { test } from 'node:test'

import { dealWith as dealWithLetter } from '../../../src/views/operations/bulk'
import { addClient, dealWith as dealWithClient } from '../../../src/views/operations/clientDeeds'
import { answerWith, json, told } from '../../browser'

const API = '/api/proxy/orchestrator/api/v1'

test('a letter is requeued or discarded', async (context) => {
  const asked = answerWith(context, () => json({}))
  await dealWithLetter('requeue', 'task:1')
  await dealWithLetter('discard', 'job/2')
  assert.deepEqual(asked.map(told), [
    `POST ${API}/dead-letters/task%3A1/requeue`,
    `POST ${API}/dead-letters/job%2F2/discard`,
  ])
})

test('a key is given once, when it is made', async (context) => {
  const asked = answerWith(context, (request) =>
    request.url.endsWith('able') ? json({ client_id: 'c' }) : json({ client_id: 'c', key: 'secret' }),
  )
  const issued = { clientId: 'c', key: 'secret' }
  assert.deepEqual(await addClient({ client_id: 'c', display_name: 'C', roles: ['operator'] }), issued)
  assert.deepEqual(await dealWithClient('rotate', 'c'), issued)
  assert.equal(await dealWithClient('disable', 'c'), null)
  assert.equal(await dealWithClient('enable', 'c'), null)
  assert.deepEqual(asked.map(told), [
    `POST ${API}/clients`,
    `POST ${API}/clients/c/rotate`,
    `POST ${API}/clients/c/disable`,
    `POST ${API}/clients/c/enable`,
  ])
})

test('a deed that is refused is not taken for done', async (context) => {
  answerWith(context, () => json({ detail: 'It is gone.' }, 404))
  await assert.rejects(dealWithLetter('requeue', 'task:1'), /It is gone/)
  await assert.rejects(dealWithClient('disable', 'c'), /It is gone/)
})
