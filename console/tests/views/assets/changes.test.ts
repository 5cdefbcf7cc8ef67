import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import { carryOut, type Said } from '../../../src/views/assets/changes'
import type { Action } from '../../../src/views/assets/standing'
import { answerWith, json, told } from '../../browser'

const said = (action: Action, change: Partial<Said> = {}): Said => ({
  action,
  assetId: 'a1',
  expected: 7,
  ordinal: 2,
  revision: null,
  reason: 'Because.',
  level: 'public',
  urlMode: 'all_versions',
  ...change,
})

/** Carries out a change, and gives what the gateway was asked for. */
async function asked(context: TestContext, change: Said): Promise<[string, unknown]> {
  const requests = answerWith(context, () => json({ changed: true }))
  await carryOut(change)
  assert.equal(requests.length, 1)
  const text = await requests[0]!.text()
  return [told(requests[0]!), text ? JSON.parse(text) : null]
}

test('every change says which state was seen, and those of what is in service which revision', async (context) => {
  const ofVersion = { asset_id: 'a1', version_ordinal: 2, expected_version: 7 }
  const expected: Record<Action, [string, unknown]> = {
    clearance: ['POST /api/assets/a1/clearance', { clearance_level: 'public', revision: 3, expected_version: 7 }],
    urlMode: ['PATCH /api/assets/a1', { url_mode: 'all_versions', expected_version: 7 }],
    unpublish: ['POST /api/platform/unpublish', { asset_id: 'a1', expected_version: 7, reason: 'Because.' }],
    revoke: ['POST /api/platform/revoke', { ...ofVersion, revision: 3, reason: 'Because.' }],
    reprocess: ['POST /api/platform/reprocess', { ...ofVersion, reason: 'Because.' }],
    retry: ['POST /api/platform/retry', ofVersion],
    delete: ['DELETE /api/assets/a1/versions/2?expected_version=7', null],
  }
  for (const [action, request] of Object.entries(expected) as [Action, [string, unknown]][]) {
    assert.deepEqual(await asked(context, said(action, { revision: 3 })), request)
  }
})

test('a version with the ordinal 0 is a version, and a reason that is not given is none', async (context) => {
  const [address] = await asked(context, said('delete', { ordinal: 0 }))
  assert.equal(address, 'DELETE /api/assets/a1/versions/0?expected_version=7')
  const [, body] = await asked(context, said('unpublish', { reason: '' }))
  assert.deepEqual(body, { asset_id: 'a1', expected_version: 7, reason: null })
})

test('what a change came to is told alike, whatever was answered', async (context) => {
  const outcome = (answer: object, action: Action = 'clearance') => {
    answerWith(context, () => json(answer))
    return carryOut(said(action))
  }
  assert.deepEqual(await outcome({ changed: false, warning: 'Take care.', job_id: null }), {
    action: 'clearance',
    isChanged: false,
    warning: 'Take care.',
    jobId: null,
  })
  assert.deepEqual(await outcome({ request_id: 'r', job_id: 'j' }, 'retry'), {
    action: 'retry',
    isChanged: true,
    warning: null,
    jobId: 'j',
  })
})

test('who was overtaken is refused', async (context) => {
  answerWith(context, () => json({ code: 'conflict', detail: 'It changed.' }, 409))
  await assert.rejects(carryOut(said('revoke')), { name: 'Problem', status: 409, message: 'It changed.' })
})
