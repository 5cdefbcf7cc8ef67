import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Health } from '../../../src/api/model'
import { processesOf } from '../../../src/views/overview/processRows'

const process = { hostname: 'h', program_version: '1.2.0', heartbeat_at: '2026-03-01T12:00:00Z' }
const orchestrator = (owner_id: string, state: string) => ({ ...process, owner_id, state, active_jobs: 1 })
const worker = (worker_id: string, state: string) => ({ ...process, worker_id, state, active_tasks: 2, concurrency: 4 })

test('processes that live come first, and of each state the orchestrators', () => {
  const rows = processesOf({
    orchestrators: [orchestrator('o1', 'gone'), orchestrator('o2', 'alive')],
    workers: [worker('w1', 'stopped'), worker('w2', 'alive'), worker('w3', 'gone'), worker('w4', 'stale')],
  } as unknown as Health)
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['o2', 'w2', 'w4', 'o1', 'w3', 'w1'],
  )
})

test('a process is told with its place and with what it holds', () => {
  const [first, second] = processesOf({
    orchestrators: [orchestrator('o', 'alive')],
    workers: [worker('w', 'alive')],
  } as unknown as Health)
  assert.deepEqual(first, {
    id: 'o',
    kind: 'Orchestrator',
    place: 'h · v1.2.0',
    state: 'alive',
    holds: '1 job',
    heartbeat: process.heartbeat_at,
  })
  assert.equal(second?.kind, 'Worker')
  assert.equal(second?.holds, '2 / 4 tasks')
})
