import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import type { Event } from '../../src/api/model'
import { EventStream, type StreamState } from '../../src/live/stream'
import { stopTheClock } from '../clock'

const ADDRESS = '/api/proxy/orchestrator/api/v1/events/stream'

/** A connection as a browser has it; the test is the server. */
class Source {
  onopen: () => void = () => undefined
  onerror: () => void = () => undefined
  isClosed = false
  private readonly listeners = new Map<string, (message: object) => void>()

  constructor(
    readonly address: string,
    made: Source[],
  ) {
    made.push(this)
  }

  addEventListener(type: string, listener: (message: object) => void): void {
    this.listeners.set(type, listener)
  }

  close(): void {
    this.isClosed = true
  }

  send(event_type: string, lastEventId: string): void {
    this.listeners.get(event_type)?.({
      lastEventId,
      data: JSON.stringify({ event_type, event_id: Number(lastEventId) }),
    })
  }
}

function streaming(context: TestContext) {
  const pass = stopTheClock(context)
  const made: Source[] = []
  class EventSource extends Source {
    constructor(address: string) {
      super(address, made)
    }
  }
  Object.assign(globalThis, { EventSource })
  context.after(() => Reflect.deleteProperty(globalThis, 'EventSource'))
  const heard: Event[] = []
  const states: StreamState[] = []
  const stream = new EventStream(
    ['job_started', 'job_completed'],
    (event) => heard.push(event),
    (state) => states.push(state),
  )
  return { pass, made, heard, states, stream, newest: () => made.at(-1)! }
}

test('a stream hears the events that it knows', (context) => {
  const { made, heard, states, stream, newest } = streaming(context)
  stream.open()
  assert.deepEqual(
    made.map(({ address }) => address),
    [ADDRESS],
  )
  assert.deepEqual(states, [])
  newest().onopen()
  assert.deepEqual(states, ['live'])
  newest().send('job_started', '7')
  newest().send('of_a_type_that_came_later', '8')
  newest().send('job_completed', '9')
  assert.deepEqual(
    heard.map(({ event_type, event_id }) => [event_type, event_id]),
    [
      ['job_started', 7],
      ['job_completed', 9],
    ],
  )
})

test('a stream that was cut comes back after the last event that it heard', async (context) => {
  const { pass, made, states, stream, newest } = streaming(context)
  stream.open()
  newest().onopen()
  newest().send('job_started', '7')
  newest().send('job_started', '')
  newest().onerror()
  assert.ok(made[0]!.isClosed, 'the browser must not try on its own as well')
  assert.deepEqual(states, ['live', 'lost'])
  await pass(490)
  assert.equal(made.length, 1)
  await pass(20)
  assert.equal(made.length, 2)
  assert.equal(newest().address, `${ADDRESS}?after=7`)
  newest().onopen()
  assert.deepEqual(states, ['live', 'lost', 'live'])
})

test('after a long loss, what happened in it is not told event by event', async (context) => {
  const { pass, stream, newest } = streaming(context)
  stream.open()
  newest().onopen()
  newest().send('job_started', '7')
  stream.close()
  await pass(59_000)
  stream.open()
  assert.equal(newest().address, `${ADDRESS}?after=7`)
  newest().onopen()
  stream.close()
  await pass(61_000)
  stream.open()
  assert.equal(newest().address, ADDRESS)
  newest().onopen()
  newest().send('job_started', '90')
  newest().onerror()
  await pass(600)
  assert.equal(newest().address, `${ADDRESS}?after=90`)
})

test('a loss is as long as all attempts to end it', async (context) => {
  const { pass, made, stream, newest } = streaming(context)
  stream.open()
  newest().onopen()
  newest().send('job_started', '7')
  for (let attempt = 0; attempt < 12; attempt += 1) {
    newest().onerror()
    await pass(8000)
  }
  assert.equal(made[1]?.address, `${ADDRESS}?after=7`)
  assert.equal(newest().address, ADDRESS)
})

test('the pauses between attempts grow to a bound, and begin anew after a success', async (context) => {
  const { pass, made, stream, newest } = streaming(context)
  const pauseAfterLoss = async () => {
    const before = made.length
    newest().onerror()
    let waited = 0
    for (; made.length === before && waited < 20_000; waited += 100) await pass(100)
    return waited
  }
  stream.open()
  const pauses = []
  for (let attempt = 0; attempt < 7; attempt += 1) pauses.push(await pauseAfterLoss())
  assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000, 8000, 8000])
  newest().onopen()
  assert.equal(await pauseAfterLoss(), 500)
})

test('a stream that is closed stays closed, also while it waits to come back', async (context) => {
  const { pass, made, stream, newest } = streaming(context)
  stream.open()
  stream.close()
  assert.ok(newest().isClosed)
  await pass(20_000)
  assert.equal(made.length, 1)
  stream.open()
  newest().onerror()
  stream.close()
  await pass(20_000)
  assert.equal(made.length, 2)
})

test('a stream that is opened again has one connection, and goes on where it was', (context) => {
  const { made, stream, newest } = streaming(context)
  stream.open()
  newest().send('job_started', '41')
  stream.open()
  assert.deepEqual(
    made.map(({ isClosed }) => isClosed),
    [true, false],
  )
  assert.equal(newest().address, `${ADDRESS}?after=41`)
})
