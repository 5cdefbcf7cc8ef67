import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import type { Asset, AssetRevision, AssetVersion } from '../../../src/api/model'
import { reportOf } from '../../../src/data/report'
import { isOpen, readUnderReview, replacedOrdinal } from '../../../src/views/review/underReview'
import { answerWith, json, told } from '../../browser'

const AT = '2026-03-01T12:00:00Z'
const asset = (change: Partial<Asset> = {}) =>
  ({ asset_id: 'a1', url_mode: 'latest_only', latest_approved_version_ordinal: null, ...change }) as Asset
const version = (version_ordinal: number, change: Partial<AssetVersion> = {}) =>
  ({
    version_ordinal,
    version_label: `v${version_ordinal}`,
    revision: 1,
    approved_revision: null,
    processing_state: 'completed',
    approval_state: 'pending_review',
    ...change,
  }) as AssetVersion

interface Stored {
  asset: Asset
  versions: AssetVersion[]
  revisions?: Partial<AssetRevision>[]
}

/** A gateway with an asset; it lists versions, the newest first, two on a page. */
function serving(context: TestContext, { asset: stored, versions, revisions = [] }: Stored): Request[] {
  const newestFirst = versions.toSorted((one, other) => other.version_ordinal - one.version_ordinal)
  return answerWith(context, (request) => {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname.endsWith('/revisions')) return json({ items: revisions, next: null })
    if (!pathname.endsWith('/versions')) return json(stored)
    const first = Number(searchParams.get('cursor') ?? 0)
    const next = first + 2 < versions.length ? String(first + 2) : null
    return json({ items: newestFirst.slice(first, first + 2), next })
  })
}

test('the first version of an asset takes the place of nothing', async (context) => {
  serving(context, { asset: asset(), versions: [version(0)] })
  const under = await readUnderReview('a1', 0)
  assert.equal(under.version.version_ordinal, 0)
  assert.equal(under.inService, null)
})

test('a new version takes the place of the latest that is in service', async (context) => {
  const served = version(0, { revision: 2, approved_revision: 2, content_hash: 'c', bbox: [1, 2, 3, 4] })
  serving(context, { asset: asset({ latest_approved_version_ordinal: 0 }), versions: [served, version(1)] })
  const { inService } = await readUnderReview('a1', 1)
  assert.deepEqual(inService, {
    ordinal: 0,
    label: 'v0',
    revision: 2,
    contentHash: 'c',
    outputHash: null,
    bbox: [1, 2, 3, 4],
    validation: null,
    isLatest: true,
  })
})

test('of a version that is made anew, its older revision is in service', async (context) => {
  const stored = {
    asset: asset({ latest_approved_version_ordinal: 0 }),
    versions: [version(0, { revision: 3, approved_revision: 2, content_hash: 'new', bbox: [9, 9, 9, 9] })],
    revisions: [
      { revision: 1, content_hash: 'oldest' },
      { revision: 2, content_hash: 'old', output_hash: 'o', outputs: { bbox: [1, 2, 3, 4] } },
    ],
  }
  serving(context, stored)
  const { inService } = await readUnderReview('a1', 0)
  assert.equal(inService?.revision, 2)
  assert.equal(inService?.contentHash, 'old')
  assert.equal(inService?.outputHash, 'o')
  assert.deepEqual(inService?.bbox, [1, 2, 3, 4])
  assert.equal(inService?.validation, null)
})

test('a version that is itself in service takes the place of nothing', async (context) => {
  serving(context, {
    asset: asset({ latest_approved_version_ordinal: 0 }),
    versions: [version(0, { approved_revision: 1 })],
  })
  assert.equal((await readUnderReview('a1', 0)).inService, null)
})

test('pages are read only as far down as needed', async (context) => {
  const versions = Array.from({ length: 9 }, (_, ordinal) => version(ordinal, { approved_revision: 1 }))
  const asked = serving(context, { asset: asset({ latest_approved_version_ordinal: 5 }), versions })
  const { inService } = await readUnderReview('a1', 7)
  assert.equal(inService?.ordinal, 5)
  assert.equal(asked.map(told).filter((each) => each.includes('/versions')).length, 2)
})

test('a version that is not there is told so', async (context) => {
  serving(context, { asset: asset(), versions: [version(0)] })
  await assert.rejects(readUnderReview('a1', 4), { name: 'Problem', status: 404 })
})

test('where every version has an address, a version takes its own place', () => {
  const latest = { latest_approved_version_ordinal: 4 }
  const all = asset({ ...latest, url_mode: 'all_versions' })
  assert.equal(replacedOrdinal(all, version(1, { approved_revision: 1 })), 1)
  assert.equal(replacedOrdinal(all, version(1)), 4)
  assert.equal(replacedOrdinal(asset(latest), version(1, { approved_revision: 1 })), 4)
  assert.equal(replacedOrdinal(asset(), version(1)), null)
})

test('a report that cannot be read is none', () => {
  assert.equal(reportOf(version(0)), null)
  assert.equal(reportOf(version(0, { validation: {} })), null)
  assert.deepEqual<unknown>(reportOf(version(0, { validation: { outcome: 'ok' } })), {
    outcome: 'ok',
    findings: [],
    facts: {},
  })
})

test('a version waits for a decision while it is there, made, and not decided', () => {
  const open = (of: Partial<Asset>, change: Partial<AssetVersion>) =>
    isOpen({ asset: asset(of), version: version(0, change), inService: null })
  assert.ok(open({}, {}))
  assert.ok(!open({ deleted_at: AT }, {}))
  assert.ok(!open({}, { deleted_at: AT }))
  assert.ok(!open({}, { processing_state: 'processing' }))
  assert.ok(!open({}, { approval_state: 'approved' }))
})
