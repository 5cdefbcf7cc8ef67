import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import type { Event, Page } from '../../../src/api/model'
import { EventLog } from '../../../src/views/job/eventLog'
import { Chance } from '../../chance'
import { settled, stopTheClock } from '../../clock'

const PAGE = 3
const event = (event_id: number) => ({ event_id, event_type: 'node_progress', created_at: '' }) as Event

/** The events that a gateway has, in pages; a cursor is the number of those before. */
class Gateway {
  stored: Event[] = []
  asked: (string | null)[] = []
  isDown = false

  add(...ids: number[]): void {
    this.stored.push(...ids.map(event))
  }

  readPage = async (cursor: string | null): Promise<Page<Event>> => {
    this.asked.push(cursor)
    await settled()
    if (this.isDown) throw new Error('down')
    const first = Number(cursor ?? 0)
    const items = this.stored.slice(first, first + PAGE)
    return { items, next: first + PAGE < this.stored.length ? String(first + PAGE) : null }
  }
}

function reading(context: TestContext, ...stored: number[]) {
  const pass = stopTheClock(context)
  const gateway = new Gateway()
  gateway.add(...stored)
  const log = new EventLog(gateway.readPage)
  const ids = () => log.getState().events.map(({ event_id }) => event_id)
  return { pass, gateway, log, ids }
}

const upTo = (last: number) => Array.from({ length: last }, (_, place) => place + 1)

test('nothing is read or kept before somebody looks', async (context) => {
  const { pass, gateway, log, ids } = reading(context, 1, 2)
  log.hear(event(2))
  log.catchUp()
  await pass(1000)
  assert.deepEqual(gateway.asked, [])
  assert.deepEqual(ids(), [])
})

test('all pages are read, once for all who look', async (context) => {
  const { pass, gateway, log, ids } = reading(context, ...upTo(8))
  log.subscribe(() => undefined)
  log.subscribe(() => undefined)
  assert.ok(log.getState().isReading)
  log.catchUp()
  await pass(10)
  await pass(10)
  assert.deepEqual(ids(), upTo(8))
  assert.deepEqual(gateway.asked, [null, '3', '6'])
  const { isWhole, isReading, error } = log.getState()
  assert.deepEqual({ isWhole, isReading, error }, { isWhole: true, isReading: false, error: null })
})

test('what is heard is added after what was read, a few times a second', async (context) => {
  const { pass, log, ids } = reading(context, 1)
  let told = 0
  log.subscribe(() => (told += 1))
  await pass(10)
  told = 0
  for (let id = 2; id < 100; id += 1) log.hear(event(id))
  assert.deepEqual(ids(), [1])
  await pass(260)
  assert.deepEqual(ids(), upTo(99))
  assert.equal(told, 1)
})

test('what is both read and heard is there once, and in order', async (context) => {
  const { pass, log, ids } = reading(context, ...upTo(7))
  log.subscribe(() => undefined)
  for (const id of [9, 7, 8, 8, 6]) log.hear(event(id))
  await pass(300)
  assert.deepEqual(ids(), upTo(9))
  for (const id of [11, 3, 10]) log.hear(event(id))
  await pass(300)
  assert.deepEqual(ids(), upTo(11))
})

test('what was missed is found by reading on from the last page', async (context) => {
  const { pass, gateway, log, ids } = reading(context, ...upTo(4))
  log.subscribe(() => undefined)
  await pass(30)
  gateway.add(5, 6, 7, 8)
  gateway.asked = []
  log.catchUp()
  await pass(30)
  assert.deepEqual(ids(), upTo(8))
  assert.deepEqual(gateway.asked, ['3', '6'])
})

test('nothing is read on while nobody looks', async (context) => {
  const { pass, gateway, log } = reading(context, 1)
  const stop = log.subscribe(() => undefined)
  await pass(30)
  stop()
  gateway.asked = []
  log.catchUp()
  await pass(30)
  assert.deepEqual(gateway.asked, [])
})

test('nothing is heard while nobody looks, and who looks again misses nothing', async (context) => {
  const { pass, gateway, log, ids } = reading(context, 1)
  const stop = log.subscribe(() => undefined)
  await pass(30)
  stop()
  gateway.add(2, 3)
  log.hear(event(2))
  log.hear(event(3))
  await pass(300)
  assert.deepEqual(ids(), [1])
  log.subscribe(() => undefined)
  await pass(30)
  assert.deepEqual(ids(), [1, 2, 3])
})

test('nobody reads to the end for those who have gone', async (context) => {
  const { pass, gateway, log, ids } = reading(context, ...upTo(8))
  log.subscribe(() => undefined)()
  await pass(30)
  assert.deepEqual(gateway.asked, [null])
  log.subscribe(() => undefined)
  await pass(30)
  assert.deepEqual(ids(), upTo(8))
})

test('what is asked for while it is read is asked for once more', async (context) => {
  const { pass, gateway, log } = reading(context, 1)
  log.subscribe(() => undefined)
  log.catchUp()
  log.catchUp()
  await pass(30)
  assert.deepEqual(gateway.asked, [null, null])
})

test('what was missed of a long log is found, however much was heard of it', async (context) => {
  const { pass, gateway, log, ids } = reading(context, 1)
  log.subscribe(() => undefined)
  await pass(30)
  for (let id = 3; id <= 30_000; id += 1) log.hear(event(id))
  await pass(300)
  gateway.add(2)
  log.catchUp()
  await pass(30)
  assert.equal(ids().length, 30_000)
  assert.ok(log.getState().isWhole)
})

test('of a long log so much is read at once, and more only where it is asked for', async (context) => {
  const pass = stopTheClock(context)
  const stored = upTo(45_000).map(event)
  const log = new EventLog(async (cursor) => {
    const [first, next] = [Number(cursor ?? 0), Number(cursor ?? 0) + 500]
    return { items: stored.slice(first, next), next: next < stored.length ? String(next) : null }
  })
  const lengthAfter = async (deed: () => void) => {
    deed()
    await pass(30)
    return log.getState().events.length
  }
  assert.equal(await lengthAfter(() => log.subscribe(() => undefined)), 20_000)
  assert.equal(await lengthAfter(() => log.catchUp()), 20_000)
  assert.equal(await lengthAfter(() => log.readMore()), 40_000)
  assert.equal(await lengthAfter(() => log.readMore()), 45_000)
  assert.ok(log.getState().isWhole)
})

test('a failure is told, and mended by the next reading', async (context) => {
  const { pass, gateway, log, ids } = reading(context, ...upTo(5))
  gateway.isDown = true
  log.subscribe(() => undefined)
  await pass(30)
  assert.match(String(log.getState().error), /down/)
  assert.equal(log.getState().isReading, false)
  log.hear(event(6))
  await pass(300)
  assert.deepEqual(ids(), [], 'what is heard would stand after a gap')
  gateway.isDown = false
  gateway.add(6)
  log.catchUp()
  await pass(30)
  assert.equal(log.getState().error, null)
  assert.deepEqual(ids(), upTo(6))
})

test('readers are told of new states, which are new objects', async (context) => {
  const { pass, log } = reading(context, 1, 2)
  const states = new Set([log.getState()])
  log.subscribe(() => states.add(log.getState()))
  await pass(30)
  assert.ok(states.size >= 3)
  const last = log.getState()
  await pass(1000)
  assert.equal(log.getState(), last)
})

test('whatever comes when, every event is there once and in order', async (context) => {
  const { pass, gateway, log, ids } = reading(context)
  const chance = new Chance(3)
  log.subscribe(() => undefined)
  let last = 0
  for (let round = 0; round < 300; round += 1) {
    const fresh = Array.from({ length: chance.whole(0, 4) }, () => (last += 1))
    gateway.add(...fresh)
    const isHeard = chance.part() < 0.8
    if (isHeard) chance.shuffled(fresh).forEach((id) => log.hear(event(id)))
    if (chance.part() < 0.1) gateway.isDown = !gateway.isDown
    if (chance.part() < 0.2) log.catchUp()
    await pass(chance.whole(0, 12) * 10)
    const shown = ids()
    assert.deepEqual(
      shown,
      [...new Set(shown)].sort((one, other) => one! - other!),
    )
  }
  gateway.isDown = false
  await pass(100)
  log.catchUp()
  await pass(3000)
  assert.deepEqual(ids(), upTo(last))
})
