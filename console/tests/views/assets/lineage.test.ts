import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { AssetRevision, AssetVersion, JobListItem, PlatformRequest } from '../../../src/api/model'
import { chainsOf, sourceOf, type Sources } from '../../../src/views/assets/lineage'

const version = (change: Partial<AssetVersion> = {}) =>
  ({ version_ordinal: 1, revision: 3, approved_revision: 2, blob_path: 'silver/new.tif', ...change }) as AssetVersion
const request = (revision: number, change: Partial<PlatformRequest> = {}) =>
  ({ version_ordinal: 1, revision, request_id: `r${revision}`, request_body: {}, ...change }) as PlatformRequest
const job = (job_id: string, revision: number | null, change: Partial<JobListItem> = {}) =>
  ({
    version_ordinal: 1,
    job_id,
    purpose: 'process',
    input_params: revision === null ? {} : { revision },
    ...change,
  }) as JobListItem
const revision = (number: number, change: Partial<AssetRevision> = {}) =>
  ({ version_ordinal: 1, revision: number, outputs: { blob_path: `silver/${number}.tif` }, ...change }) as AssetRevision

const sources = (change: Partial<Sources>): Sources => ({ requests: [], jobs: [], revisions: [], ...change })

test('each revision of a version is a chain, the newest first', () => {
  const chains = chainsOf(version(), sources({ revisions: [revision(1), revision(2)] }))
  assert.deepEqual(
    chains.map((chain) => [chain.revision, chain.isCurrent, chain.isInService]),
    [
      [3, true, false],
      [2, false, true],
      [1, false, false],
    ],
  )
  assert.deepEqual(
    chains.map(({ outputs }) => outputs.map(({ value }) => value)),
    [['silver/new.tif'], ['silver/2.tif'], ['silver/1.tif']],
  )
})

test('what is deleted is not in service', () => {
  const deleted = version({ deleted_at: '2026-03-01T12:00:00Z', approved_revision: 3 })
  assert.deepEqual(
    chainsOf(deleted, sources({})).map(({ isInService }) => isInService),
    [false],
  )
})

test('requests and jobs belong to their revision, and to no other version', () => {
  const [newest, older] = chainsOf(
    version(),
    sources({
      revisions: [revision(2)],
      requests: [request(3), request(2), request(3, { request_id: 'other', version_ordinal: 0 })],
      jobs: [
        job('a', 3),
        job('b', 2),
        job('c', 2, { purpose: 'export' }),
        job('other', 3, { version_ordinal: 0 }),
        job('none', 3, { version_ordinal: null }),
      ],
    }),
  )
  assert.deepEqual(
    newest?.requests.map(({ request_id }) => request_id),
    ['r3'],
  )
  assert.deepEqual(
    newest?.jobs.map(({ job_id }) => job_id),
    ['a'],
  )
  assert.deepEqual(
    older?.requests.map(({ request_id }) => request_id),
    ['r2'],
  )
  assert.deepEqual(
    older?.jobs.map(({ job_id }) => job_id),
    ['b'],
  )
  assert.deepEqual(
    older?.publishing.map(({ job_id }) => job_id),
    ['c'],
  )
})

test('a job that was not told its revision is found by what is kept of that, else it works on the current one', () => {
  const [newest, second, first] = chainsOf(
    version(),
    sources({
      revisions: [revision(1, { job_id: 'kept' }), revision(2)],
      requests: [request(2, { job_id: 'asked' })],
      jobs: [job('kept', null), job('asked', null), job('unknown', null)],
    }),
  )
  const ids = (chain: typeof newest) => chain?.jobs.map(({ job_id }) => job_id)
  assert.deepEqual([ids(newest), ids(second), ids(first)], [['unknown'], ['asked'], ['kept']])
})

test('the source of a request is where its data came from', () => {
  const of = (request_body: object) => sourceOf({ request_body } as PlatformRequest)
  assert.equal(of({ submission: { container_name: 'bronze', file_name: 'demo/island.tif' } }), 'bronze/demo/island.tif')
  assert.equal(of({ submission: { file_name: 'island.tif' } }), 'island.tif')
  assert.equal(of({ submission: {} }), null)
  assert.equal(of({}), null)
})
