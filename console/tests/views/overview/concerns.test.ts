import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Health, JobListItem, Queue, Statistics } from '../../../src/api/model'
import { concernsOf, type Known } from '../../../src/views/overview/concerns'

const AT = '2026-03-01T12:00:00Z'
const version = {
  asset_id: 'a1',
  platform_id: 'demo',
  platform_refs: { dataset_id: 'island', resource_id: 7 },
  version_label: '2026-03',
  version_ordinal: 2,
}
const queue = (change: Partial<Queue>): Queue => ({
  queue: 'default',
  queued: 0,
  delayed: 0,
  leased: 0,
  dead: 0,
  workers: 1,
  unserved: 0,
  oldest_seconds: null,
  ...change,
})

interface Standing {
  database?: boolean
  orchestrators?: string[]
  workers?: string[]
  targets?: Record<string, boolean>
}

function health({ database = true, orchestrators = ['alive'], workers = ['alive'], targets = {} }: Standing): Health {
  return {
    database: { ok: database },
    orchestrators: orchestrators.map((state) => ({ state })),
    workers: workers.map((state) => ({ state })),
    targets: { targets: Object.fromEntries(Object.entries(targets).map(([name, ok]) => [name, { ok }])) },
  } as unknown as Health
}

const idsOf = (known: Known) => concernsOf(known).map(({ id }) => id)

test('where nothing is known, or all is well, nothing needs attention', () => {
  const none = { items: [], next: null }
  assert.deepEqual(concernsOf({}), [])
  assert.deepEqual(
    concernsOf({
      statistics: { failed_24h: 0 } as Statistics,
      health: health({ orchestrators: ['gone', 'alive'], targets: { serve: true } }),
      queues: { items: [queue({ queued: 5 }), queue({ workers: 0 })] },
      failedVersions: none,
      stuckVersions: none,
      newestFailedJob: none,
      reviews: none,
    }),
    [],
  )
})

test('a database, processes and services that do not answer are told', () => {
  assert.deepEqual(idsOf({ health: health({ orchestrators: ['stale', 'gone'], workers: [] }) }), [
    'orchestrators',
    'workers',
  ])
  assert.deepEqual(idsOf({ health: health({ targets: { serve: false, orchestrator: true } }) }), ['target-serve'])
  const broken = health({ database: false, orchestrators: [], workers: [] })
  assert.deepEqual(idsOf({ health: broken }), ['database'], 'without a database nobody knows of processes')
})

test('messages that no worker takes, and dead letters of all queues, are told', () => {
  const items = [
    queue({ queue: 'raster', queued: 1234, workers: 0, unserved: 1234, dead: 1 }),
    queue({ queue: 'vector', queued: 2, workers: 1, dead: 2 }),
    queue({ queue: 'idle', delayed: 3, workers: 0 }),
  ]
  const [unmanned, dead, ...others] = concernsOf({ queues: { items } })
  assert.deepEqual(others, [])
  assert.equal(
    `${unmanned?.number} ${unmanned?.text}`,
    '1,234 waiting on raster, which no worker serves: graticule worker --queues raster',
  )
  assert.equal(`${dead?.number} ${dead?.text}`, '3 dead letters')
  assert.equal(dead?.to, '/operations?tab=dead-letters')
})

test('of versions, how many there are and the first of them is told', () => {
  const failed = { ...version, purpose: 'process', failed_at: AT, error: 'It broke.' }
  const stuck = { ...version, processing_started_at: AT }
  const waiting = { ...version, waiting_since: AT }
  const concerns = concernsOf({
    failedVersions: { items: [failed, failed], next: 'more' },
    stuckVersions: { items: [stuck] },
    reviews: { items: [waiting, waiting] },
  } as unknown as Known)
  assert.deepEqual(
    concerns.map(({ number, text }) => `${number} ${text}`),
    ['2+ versions failed', '1 version in processing for over an hour', '2 versions wait for review'],
  )
  assert.deepEqual(
    concerns.map(({ example }) => example?.to),
    ['/assets/a1', '/assets/a1', '/review/a1/2'],
  )
  assert.deepEqual(concerns[0]?.example, {
    text: 'demo · island / 7 · 2026-03',
    to: '/assets/a1',
    at: AT,
    error: 'It broke.',
  })
})

test('exports that failed stand beside the versions, and lead to the job that can go on', () => {
  const items = [
    { ...version, purpose: 'export', job_id: 'j2', failed_at: AT, error: 'The disk is full.' },
    { ...version, purpose: 'process', job_id: 'j1', failed_at: AT, error: 'It broke.' },
  ]
  const concerns = concernsOf({ failedVersions: { items } } as unknown as Known)
  assert.deepEqual(
    concerns.map(({ number, text, to }) => `${number} ${text} ${to}`),
    ['1 version failed /assets?processing_state=failed', '1 export or withdrawal failed /jobs/j2'],
  )
  assert.equal(concerns[1]?.example?.error, 'The disk is full.')
})

test('a version is named as its partner has it', () => {
  const partner = { platform_id: 'demo', required_refs: ['resource_id', 'dataset_id'] }
  const known = { partners: [partner], reviews: { items: [version] } } as unknown as Known
  assert.equal(concernsOf(known)[0]?.example?.text, 'demo · 7 / island · 2026-03')
})

test('jobs that failed are counted by the statistics, and the newest is an example', () => {
  const job = { job_id: 'j'.repeat(32), workflow_id: 'ingest', created_at: AT, ended_at: null, error_message: 'Oh.' }
  const found = { items: [job as JobListItem] }
  assert.deepEqual(idsOf({ newestFailedJob: found }), [])
  assert.deepEqual(idsOf({ newestFailedJob: found, statistics: { failed_24h: 0 } as Statistics }), [])
  const [concern] = concernsOf({ newestFailedJob: found, statistics: { failed_24h: 1 } as Statistics })
  assert.equal(`${concern?.number} ${concern?.text}`, '1 job failed in 24 hours')
  assert.equal(concern?.to, '/jobs?status=failed')
  assert.deepEqual(concern?.example, {
    text: `ingest ${'j'.repeat(16)}`,
    to: `/jobs/${'j'.repeat(32)}`,
    at: AT,
    error: 'Oh.',
  })
  const [alone] = concernsOf({ statistics: { failed_24h: 4 } as Statistics })
  assert.equal(alone?.example, undefined)
})

test('what stands still comes before what waits for a decision, and each has a name of its own', () => {
  const ids = idsOf({
    statistics: { failed_24h: 1 } as Statistics,
    health: health({ workers: [], targets: { serve: false, orchestrator: false } }),
    queues: {
      items: [queue({ queue: 'a', unserved: 1, workers: 0, dead: 1 }), queue({ queue: 'b', unserved: 1, workers: 0 })],
    },
    failedVersions: { items: [{ ...version, purpose: 'process' }] },
    stuckVersions: { items: [version] },
    reviews: { items: [version] },
  } as unknown as Known)
  assert.equal(new Set(ids).size, ids.length)
  assert.deepEqual(ids.slice(-5), ['dead', 'failed', 'jobs', 'stuck', 'reviews'])
})
