import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { QueryClient, QueryKey } from '@tanstack/react-query'

import type { Event } from '../../src/api/model'
import { Touched } from '../../src/live/touched'
import { stopTheClock } from '../clock'

const ON_THE_PAGE: QueryKey[] = [
  ['job', 'a', 'detail'],
  ['job', 'a', 'nodes'],
  ['job', 'b', 'detail'],
  ['jobs', { status: 'failed' }, undefined],
  ['queues', 'all'],
  ['asset', 'x'],
  ['asset', 'y', 'versions', undefined],
  ['assets', {}, undefined],
  ['reviews', null],
  ['overview', 'health'],
  ['session'],
  ['workflows', 'a'],
  ['clients'],
  ['platforms'],
]

/** What is read anew at one time, and what ends it. */
interface Reading {
  keys: string[]
  end: () => void
}

/** Of a client of queries, what events need; a reading takes until it is ended. */
class Client {
  readonly readings: Reading[] = []

  invalidateQueries({ predicate }: { predicate: (query: { queryKey: QueryKey }) => boolean }): Promise<void> {
    const keys = ON_THE_PAGE.filter((queryKey) => predicate({ queryKey })).map((key) => key.slice(0, 2).join(' '))
    return new Promise((end) => this.readings.push({ keys: [...new Set(keys)], end }))
  }

  /** The readings of all but the overview, or of that alone. */
  of(overview: boolean): Reading[] {
    return this.readings.filter(({ keys }) => keys.includes('overview health') === overview)
  }
}

function touching() {
  const client = new Client()
  return { client, touched: new Touched(client as unknown as QueryClient) }
}

const ofJob = (job_id: string) => ({ job_id }) as Event
const ofAsset = (asset_id: string) => ({ asset_id }) as Event

test('an event of a job touches that job, and what any job may change', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  touched.add(ofJob('a'))
  await pass(200)
  assert.deepEqual(client.of(false)[0]?.keys, ['job a', 'jobs [object Object]', 'queues all'])
  assert.deepEqual(client.of(true)[0]?.keys, ['overview health'])
})

test('an event of an asset touches that asset, and what any asset may change', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  touched.add(ofAsset('y'))
  await pass(200)
  assert.deepEqual(client.of(false)[0]?.keys, ['asset y', 'assets [object Object]', 'reviews '])
  assert.deepEqual(client.of(true)[0]?.keys, ['overview health'])
})

test('a command touches the list of what it changes', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  touched.add({ event_type: 'command_executed', data: { command: 'client.add' } } as unknown as Event)
  await pass(200)
  assert.ok(client.readings.some(({ keys }) => keys.join() === 'clients'))
  assert.ok(!client.readings.some(({ keys }) => keys.length > 1))
})

test('an event of nothing that is shown touches nothing', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  for (const data of [undefined, {}, { command: 'cache.invalidate' }, { command: 7 }]) {
    touched.add({ event_type: 'command_executed', data } as unknown as Event)
  }
  await pass(5000)
  assert.equal(client.readings.length, 0)
})

test('events that come together are one round', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  touched.add(ofJob('a'))
  await pass(100)
  assert.equal(client.readings.length, 0)
  touched.add(ofJob('b'))
  touched.add(ofAsset('x'))
  await pass(100)
  assert.equal(client.of(false).length, 1)
  const { keys } = client.of(false)[0]!
  for (const key of ['job a', 'job b', 'asset x']) assert.ok(keys.includes(key), key)
  assert.ok(!keys.includes('asset y'))
})

test('no round begins while one is read, and what was touched meanwhile is read in the next', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  touched.add(ofJob('a'))
  await pass(200)
  touched.add(ofJob('b'))
  await pass(10_000)
  touched.add(ofAsset('x'))
  await pass(10_000)
  assert.equal(client.of(false).length, 1)
  client.of(false)[0]!.end()
  await pass(900)
  assert.equal(client.of(false).length, 1, 'there is a pause after a round')
  await pass(300)
  assert.equal(client.of(false).length, 2)
  const { keys, end } = client.of(false)[1]!
  assert.ok(keys.includes('job b') && keys.includes('asset x'))
  assert.ok(!keys.includes('job a'), 'what was read and not touched since is not read again')
  end()
  await pass(10_000)
  assert.equal(client.of(false).length, 2, 'without events there is no round')
})

test('what is touched in the pause after a round is not lost', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  touched.add(ofJob('a'))
  await pass(200)
  client.of(false)[0]!.end()
  await pass(500)
  touched.add(ofJob('a'))
  await pass(1000)
  assert.equal(client.of(false).length, 2)
  assert.ok(client.of(false)[1]!.keys.includes('job a'))
})

test('after a rest, events are read at once again', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  touched.add(ofJob('a'))
  await pass(200)
  client.readings.forEach(({ end }) => end())
  await pass(60_000)
  touched.add(ofJob('b'))
  await pass(130)
  assert.equal(client.of(false).length, 2)
})

test('the overview has rounds of its own, and holds up nothing else', async (context) => {
  const pass = stopTheClock(context)
  const { client, touched } = touching()
  for (let second = 0; second < 12; second += 1) {
    touched.add(ofJob('a'))
    await pass(1000)
    client.of(false).forEach(({ end }) => end())
    if (second >= 6) client.of(true).forEach(({ end }) => end())
  }
  assert.ok(client.of(false).length >= 6, `${client.of(false).length} rounds in 12 s`)
  const ofOverview = client.of(true).length
  assert.ok(ofOverview >= 2 && ofOverview <= 4, `${ofOverview} rounds of the overview, of which the first took 7 s`)
})
