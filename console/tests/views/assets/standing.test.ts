import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Asset, AssetVersion } from '../../../src/api/model'
import { approvalOf, assetActions, isWaiting, versionActions } from '../../../src/views/assets/standing'

const AT = '2026-03-01T12:00:00Z'
const asset = (change: Partial<Asset> = {}) => ({ latest_approved_version_ordinal: 0, ...change }) as Asset
const version = (change: Partial<AssetVersion> = {}) =>
  ({ processing_state: 'completed', approval_state: 'pending_review', ...change }) as AssetVersion

test('a version that was deleted or revoked is called so', () => {
  assert.equal(approvalOf(version()), 'pending_review')
  assert.equal(approvalOf(version({ approval_state: 'approved' })), 'approved')
  assert.equal(approvalOf(version({ revoked_at: AT })), 'revoked')
  assert.equal(approvalOf(version({ revoked_at: AT, deleted_at: AT })), 'deleted')
})

test('what is processed and not decided waits, unless it is gone', () => {
  assert.ok(isWaiting(asset(), version()))
  assert.ok(!isWaiting(asset(), version({ processing_state: 'processing' })))
  assert.ok(!isWaiting(asset(), version({ approval_state: 'rejected' })))
  assert.ok(!isWaiting(asset({ deleted_at: AT }), version()))
  assert.ok(!isWaiting(asset(), version({ deleted_at: AT })))
})

test('an asset is cleared while a version of it is in service', () => {
  assert.deepEqual(assetActions(asset()), ['clearance', 'urlMode', 'unpublish'])
  assert.deepEqual(assetActions(asset({ latest_approved_version_ordinal: null })), ['urlMode', 'unpublish'])
  assert.deepEqual(assetActions(asset({ deleted_at: AT })), [])
})

test('what may be done with a version follows from how it stands', () => {
  const actions = (change: Partial<AssetVersion>) => versionActions(asset(), version(change))
  assert.deepEqual(actions({ processing_state: 'failed' }), ['retry', 'reprocess', 'delete'])
  assert.deepEqual(actions({ processing_state: 'processing' }), ['delete'])
  assert.deepEqual(actions({ approval_state: 'approved', approved_revision: 1 }), ['reprocess', 'revoke', 'delete'])
  assert.deepEqual(actions({ processing_state: 'queued', approved_revision: 1 }), ['revoke', 'delete'])
  assert.deepEqual(actions({ deleted_at: AT, approved_revision: 1 }), [])
  assert.deepEqual(versionActions(asset({ deleted_at: AT }), version()), [])
})
