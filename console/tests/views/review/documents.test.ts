import assert from 'node:assert/strict'
import { test } from 'node:test'

import { previewOf } from '../../../src/map'
import { isWithoutData, readFeatures, readRaster, type RasterTold } from '../../../src/views/review/documents'
import { answerWith, json, told } from '../../browser'

const PLACE = previewOf('a1', 2, 1)
const ROOT = '/api/view/preview/a1/2'
const { signal } = new AbortController()

test('of a raster, the statistics of its bands are asked for, but not of too many', async (context) => {
  for (const [count, bands] of [
    [2, 2],
    [40, 16],
  ] as const) {
    const asked = answerWith(context, ({ url }) => json(url.endsWith('info') ? { count } : { b1: { min: 0 } }))
    const found = await readRaster(PLACE, signal)
    assert.equal(found.info.count, count)
    assert.equal(found.statistics?.b1?.min, 0)
    assert.equal(told(asked[0]!), `GET ${ROOT}/info`)
    const wanted = Array.from({ length: bands }, (_, place) => `bidx=${place + 1}`).join('&')
    assert.equal(told(asked[1]!), `GET ${ROOT}/statistics?${wanted}`)
  }
})

test('a raster without statistics is still looked at, but not one that nobody answers for', async (context) => {
  answerWith(context, ({ url }) => (url.endsWith('info') ? json({ count: 1 }) : json({ detail: 'Too large.' }, 413)))
  assert.deepEqual<unknown>(await readRaster(PLACE, signal), { info: { count: 1 }, statistics: null })
  answerWith(context, ({ url }) => {
    if (url.endsWith('info')) return json({ count: 1 })
    throw new TypeError('fetch failed')
  })
  await assert.rejects(readRaster(PLACE, signal), { isUnreachable: true })
})

test('a raster is without data where no band has any', () => {
  const withBands = (...bands: object[]) => ({ statistics: bands.length > 0 ? { ...bands } : null }) as RasterTold
  const [some, none, masked] = [
    { min: 0, valid_percent: 50 },
    { min: null, valid_percent: null },
    { min: 0, valid_percent: 0 },
  ]
  assert.ok(isWithoutData(withBands(none, masked)))
  assert.ok(!isWithoutData(withBands(none, some)))
  assert.ok(!isWithoutData(withBands()), 'nobody knows')
})

test('of features, their number, shape and columns are read', async (context) => {
  const properties = {
    geometry: { format: 'geometry-multipolygon' },
    name: { type: 'string' },
    since: { type: 'string', format: 'date-time' },
  }
  const asked = answerWith(context, ({ url }) =>
    json(url.endsWith('queryables') ? { properties } : { numberMatched: 12, features: [] }),
  )
  assert.deepEqual(await readFeatures(PLACE, signal), {
    count: 12,
    geometry: 'multipolygon',
    columns: [
      { name: 'name', type: 'string' },
      { name: 'since', type: 'date-time' },
    ],
  })
  assert.deepEqual(asked.map(told).sort(), [
    `GET ${ROOT}/collections/features/items?limit=1`,
    `GET ${ROOT}/collections/features/queryables`,
  ])
})
