import assert from 'node:assert/strict'
import { test } from 'node:test'

import { eventTypeValues } from '../../src/api/gateway'
import type { Event } from '../../src/api/model'
import { eventWords } from '../../src/events/words'
import { eventName } from '../../src/texts/events'

const words = (event_type: string, data: Event['data'] = {}, more: Partial<Event> = {}) =>
  eventWords({ event_type, created_at: '2026-03-01T12:00:00Z', node_id: 'tile', data, ...more } as Event)

/** What an event of this type always says. */
const ALWAYS: Partial<Record<Event['event_type'], Event['data']>> = {
  command_executed: { command: 'cache.invalidate' },
  asset_clearance_changed: { clearance_state: 'public' },
  asset_url_mode_changed: { url_mode: 'latest_only' },
}

test('every event is a sentence, also one that says no more than it must', () => {
  for (const type of eventTypeValues) {
    const told = words(type, ALWAYS[type])
    assert.match(told, /^[A-Z]|^tile /, `${type}: ${told}`)
    assert.ok(told.includes(' '), `${type}: ${told}`)
    assert.notEqual(told, eventName(type), type)
    assert.doesNotMatch(told, /undefined|null|NaN|\[object|[:;,]$|\s$/, `${type}: ${told}`)
  }
})

test('every event is told whatever its data are', () => {
  const names = [
    'error',
    'reason',
    'next',
    'ready',
    'children',
    'from',
    'to',
    'count',
    'delay_seconds',
    'fields',
    'status',
  ]
  for (const type of eventTypeValues) {
    for (const value of [null, 17, '', 'text', true, [], [null, 1], { a: 1 }]) {
      const data = Object.fromEntries([...names, 'fan_out', 'revision', 'version_label'].map((name) => [name, value]))
      assert.equal(typeof words(type, data, { node_id: null, version_ordinal: 0 }), 'string')
    }
    assert.equal(typeof eventWords({ event_type: type, created_at: '' }), 'string', 'there may be no data at all')
  }
})

test('an event of a type that came later is told by its name', () => {
  assert.equal(words('asset_moved_away'), 'Asset moved away')
})

test('what happens to a job and its nodes is told', () => {
  const told: [string, Event['data'], string][] = [
    ['job_created', { workflow_id: 'ingest' }, 'The job was submitted for ingest'],
    ['job_failed', { node_id: 'tile', error: 'It broke' }, 'The job failed at tile: It broke'],
    ['job_resumed', { ready: ['a', 'b'] }, 'The job goes on with a, b'],
    ['node_ready', {}, 'tile is ready'],
    ['node_dispatched', { handler: 'cog', queue: 'raster', retry_count: 0 }, 'tile was dispatched to cog on raster'],
    ['node_dispatched', { handler: 'cog', retry_count: 2 }, 'tile was dispatched to cog, attempt 3'],
    ['node_running', { worker_id: 'w1' }, 'tile is running on w1'],
    ['node_running', { children: 1200 }, 'tile made 1,200 children'],
    ['node_progress', { done: 1500, total: 3000, message: 'tiles' }, 'tile is at 1,500 of 3,000: tiles'],
    ['node_completed', { next: ['a'] }, 'tile chose the way to a'],
    ['node_completed', { children: 3, failed: 1 }, 'tile completed: 3 children, 1 of them failed'],
    ['node_completed', { count: 1 }, 'tile completed with 1 result'],
    ['node_failed', { error: 'No', will_retry: true }, 'tile failed: No; it is tried again'],
    ['node_failed', { error: 'The job was cancelled', cancelled: true }, 'tile was stopped: The job was cancelled'],
    ['node_retry', { retry_count: 1, delay_seconds: 1.26 }, 'tile is tried again in 1.3 s (retry 1)'],
    ['checkpoint_saved', { phase: 'copied' }, 'tile saved the phase copied'],
    ['callback_sent', { attempt: 1, status: 204 }, 'The callback was delivered (status 204)'],
    [
      'callback_failed',
      { attempt: 6, error: 'No', next_attempt_at: null },
      'The callback failed at attempt 6: No; it is given up',
    ],
  ]
  for (const [type, data, sentence] of told) assert.equal(words(type, data), sentence)
})

test('what children of a fan-out did together is told once', () => {
  const children = (from: number, to: number) => ({ fan_out: true, children: to - from + 1, from, to })
  assert.equal(words('node_ready', children(0, 1199)), '1,200 children of tile (0 to 1199) are ready')
  assert.equal(words('node_dispatched', children(3, 3)), 'Child 3 of tile was dispatched')
})

test('what happens to a version names it as far as it is known', () => {
  const version = { version_ordinal: 2 }
  const full = { version_label: '2026-03', revision: 1 }
  assert.equal(words('asset_version_added', full, version), 'Version 2 (2026-03, revision 1) was submitted')
  assert.equal(words('asset_version_added', {}, { version_ordinal: 0 }), 'Version 0 was submitted')
  assert.equal(
    words('asset_rejected', { revision: 3, reason: 'Blurred' }, version),
    'Version 2 (revision 3) was rejected: Blurred',
  )
  assert.equal(words('asset_processing_started'), 'Processing of the version began')
  const cleared = { clearance_before: 'uncleared', clearance_state: 'public' }
  assert.equal(words('asset_approved', cleared, version), 'Version 2 was approved, and the asset cleared: Public')
  assert.equal(words('asset_approved', { ...cleared, clearance_before: 'public' }, version), 'Version 2 was approved')
})

test('commands are told by what they did', () => {
  assert.equal(
    words('command_executed', { command: 'client.rotate', client_id: 'c' }),
    'The client c was given a new key',
  )
  assert.equal(
    words('command_executed', { command: 'asset.reindex', outcome: 'unchanged' }),
    'The asset was set right: it was so already',
  )
  assert.equal(words('command_executed', { command: 'moon.land' }), 'The command moon.land was carried out')
})
