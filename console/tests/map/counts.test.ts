import assert from 'node:assert/strict'
import { test } from 'node:test'

import { counted, countsInView, countText, keep } from '../../src/map/counts'

const TILES = 'https://graticule.test/view/preview/a/1/tiles/{z}/{x}/{y}?version=2'
const tile = (place: string, of = TILES) => of.replace('{z}/{x}/{y}', place)

test('the tiles in view are summed up', () => {
  keep(tile('1/0/0'), { shown: 10, merged: 5, total: 15 })
  keep(tile('1/1/0'), { shown: 1, merged: 2, total: 4 })
  keep(tile('1/1/1'), { shown: 100, merged: 100, total: 200 })
  keep(tile('0/0/0'), { shown: 7, merged: 7, total: 14 })
  keep(tile('1/0/0', 'https://graticule.test/other/{z}/{x}/{y}'), { shown: 1000, merged: 0, total: 1000 })
  assert.deepEqual(countsInView(TILES, { zoom: 1, bounds: [-170, 10, 170, 60] }), { shown: 11, merged: 7, total: 19 })
  assert.deepEqual(countsInView(TILES, { zoom: 1, bounds: [10, 10, 20, 60] }), { shown: 1, merged: 2, total: 4 })
  assert.deepEqual(countsInView(TILES, { zoom: 1, bounds: [190, 10, 200, 60] }), { shown: 10, merged: 5, total: 15 })
  assert.deepEqual(countsInView(TILES, { zoom: 0, bounds: [-900, -80, 900, 80] }), { shown: 7, merged: 7, total: 14 })
  assert.deepEqual(countsInView(TILES, { zoom: 5, bounds: [-170, 10, 170, 60] }), { shown: 0, merged: 0, total: 0 })
})

test('what is not shown is told, and nothing when all is shown', () => {
  assert.equal(countText({ shown: 12, merged: 0, total: 12 }, 12), null)
  assert.equal(
    countText({ shown: 1200, merged: 30_000, total: 31_200 }, 31_000),
    '1,000 of 31,000 features in view are shown individually; 30,000 are merged into shapes. Zoom in to see more.',
  )
  assert.equal(
    countText({ shown: 10_000, merged: 0, total: 12_000 }, null),
    '10,000 of 12,000 features in view are shown individually; 2,000 are not shown. Zoom in to see more.',
  )
  assert.equal(
    countText({ shown: 9, merged: 1, total: 11 }, null),
    '9 of 11 features in view are shown individually; 1 is merged into a shape, 1 is not shown. Zoom in to see more.',
  )
  assert.equal(
    countText({ shown: 10_000, merged: 0, total: Infinity }, null),
    'Only some of the features in view are shown. Zoom in to see more.',
  )
})

test('tiles are fetched by a protocol that reads their headers', () => {
  assert.equal(counted('https://graticule.test/{z}/{x}/{y}'), 'counted://https://graticule.test/{z}/{x}/{y}')
})
