import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { WaitingVersion } from '../../../src/api/model'
import { mapKeys, type MapView } from '../../../src/views/review/mapView'
import { neighbours, pathOf } from '../../../src/views/review/queue'

const waiting = (asset_id: string, version_ordinal: number) => ({ asset_id, version_ordinal }) as WaitingVersion
const QUEUE = [waiting('a', 0), waiting('a', 1), waiting('b', 0)]

test('before and after a version are its neighbours in the queue', () => {
  assert.deepEqual(neighbours(QUEUE, 'a', 0), { previous: null, next: QUEUE[1]! })
  assert.deepEqual(neighbours(QUEUE, 'a', 1), { previous: QUEUE[0]!, next: QUEUE[2]! })
  assert.deepEqual(neighbours(QUEUE, 'b', 0), { previous: QUEUE[1]!, next: null })
})

test('of a version that does not wait, the first of the queue comes next', () => {
  assert.deepEqual(neighbours(QUEUE, 'b', 1), { previous: null, next: QUEUE[0]! })
  assert.deepEqual(neighbours([], 'a', 0), { previous: null, next: null })
  assert.equal(pathOf(waiting('a', 0)), '/review/a/0')
})

test('keys change what the map shows', () => {
  const done: string[] = []
  const view: MapView = {
    canSwipe: true,
    isSwiping: false,
    setSwiping: (isSwiping) => done.push(`swipe ${isSwiping}`),
    opacity: 40,
    setOpacity: (percent) => done.push(`opacity ${percent}`),
  }
  const map = { current: { zoomToExtent: () => done.push('extent') } } as unknown as Parameters<typeof mapKeys>[1]
  const keys = mapKeys(view, map)
  for (const key of ['s', 'z', '[', ']']) keys[key]?.()
  assert.deepEqual(done, ['swipe true', 'extent', 'opacity 30', 'opacity 50'])
  assert.equal(mapKeys({ ...view, canSwipe: false }, map).s, undefined)
})
