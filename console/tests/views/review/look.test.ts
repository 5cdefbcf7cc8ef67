import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { BandStatistics, RasterInfo, RasterTold } from '../../../src/views/review/documents'
import {
  COLOUR_MAPS,
  lookFrom,
  lookWritten,
  pictureParameters,
  suggestedRanges,
  usualLook,
  type Look,
  type Range,
} from '../../../src/views/review/look'
import { Chance } from '../../chance'

const statistics = (low: number, high: number, min = low, max = high) =>
  ({ percentile_2: low, percentile_98: high, min, max }) as BandStatistics

function raster(count: number, change: Partial<RasterInfo> = {}, known: RasterTold['statistics'] = null): RasterTold {
  const band_descriptions = Array.from({ length: count }, (_, place): [string, string] => [`b${place + 1}`, ''])
  return { info: { count, dtype: 'float32', band_descriptions, ...change } as RasterInfo, statistics: known }
}

const look = (bands: number[], ranges: Range[] | null = null, colours: string | null = null): Look => ({
  bands,
  ranges,
  colours,
})

test('red, green and blue are shown where a raster says which they are', () => {
  const colorinterp = ['blue', 'green', 'red', 'undefined']
  assert.deepEqual(usualLook(raster(4, { colorinterp })).bands, [3, 2, 1])
  const described: [string, string][] = [
    ['b1', 'NIR'],
    ['b2', 'Red'],
    ['b3', 'GREEN'],
    ['b4', 'blue'],
  ]
  assert.deepEqual(usualLook(raster(4, { band_descriptions: described, colorinterp: null })).bands, [2, 3, 4])
  assert.deepEqual(
    usualLook(raster(4, { colorinterp: ['gray', 'undefined', 'undefined', 'undefined'] })).bands,
    [1, 2, 3],
  )
})

test('otherwise the first three bands are shown, or the only one', () => {
  const usual = [1, 2, 3, 12].map((count) => usualLook(raster(count)).bands)
  assert.deepEqual(usual, [[1], [1], [1, 2, 3], [1, 2, 3]])
})

test('the values suggest a range for each band that is shown', () => {
  const nothing = { percentile_2: null, percentile_98: null, min: null, max: null } as BandStatistics
  const known = { b1: statistics(2, 98), b2: statistics(5, 5, 0, 9), b3: statistics(7, 7), b4: nothing }
  assert.deepEqual(suggestedRanges(raster(3, {}, known), look([1])), [[2, 98]])
  assert.deepEqual(suggestedRanges(raster(3, {}, known), look([2])), [[0, 9]], 'most pixels may be alike')
  assert.equal(suggestedRanges(raster(3, {}, known), look([3])), null, 'all pixels may be alike')
  assert.equal(suggestedRanges(raster(3, {}, known), look([1, 2, 3])), null)
  assert.equal(suggestedRanges(raster(20, {}, known), look([17])), null, 'there are no statistics of it')
  assert.equal(suggestedRanges(raster(3), look([1])), null)
  assert.equal(suggestedRanges(raster(4, {}, known), look([4])), null, 'it may have no data')
})

test('a picture is shown as it is, and a single band of it by its values', () => {
  const known = { b1: statistics(10, 20), b2: statistics(10, 20), b3: statistics(10, 20) }
  const picture = raster(3, { dtype: 'uint8' }, known)
  assert.equal(suggestedRanges(picture, look([1, 2, 3])), null)
  assert.deepEqual(suggestedRanges(picture, look([2])), [[10, 20]])
})

test('the services are told bands, ranges and colours', () => {
  const told = raster(3, {}, { b1: statistics(2, 98) })
  assert.deepEqual(pictureParameters(told, look([1], null, 'viridis')), [
    ['bidx', '1'],
    ['rescale', '2,98'],
    ['colormap_name', 'viridis'],
  ])
  const ranges: Range[] = [
    [0, 1],
    [-5, 5],
    [1e-7, 2.5],
  ]
  assert.deepEqual(pictureParameters(told, look([3, 2, 1], ranges, 'viridis')), [
    ['bidx', '3'],
    ['bidx', '2'],
    ['bidx', '1'],
    ['rescale', '0,1'],
    ['rescale', '-5,5'],
    ['rescale', '1e-7,2.5'],
  ])
})

test('what an address says wrongly, or of another raster, is as usual', () => {
  const told = raster(4)
  const usual = usualLook(told)
  for (const bands of ['', '0', '5', '1,2', '1,2,3,4', '1.5', 'a', '1,,3', '-1']) {
    assert.deepEqual(lookFrom(new URLSearchParams({ bands }), told), usual, bands)
  }
  for (const range of ['', '1', '1,1', '2,1', 'a,b', ',']) {
    assert.equal(lookFrom(new URLSearchParams({ bands: '1', range }), told).ranges, null, range)
  }
  for (const range of ['1,2', '1,2,3,4', '1,2,3,4,6,5']) {
    assert.equal(lookFrom(new URLSearchParams({ bands: '1,2,3', range }), told).ranges, null, range)
  }
  for (const colours of ['', 'pink', 'constructor']) {
    assert.equal(lookFrom(new URLSearchParams({ colours }), told).colours, null, colours)
  }
})

/** An address in which a look is written. */
function addressOf(wanted: Look, told: RasterTold): URLSearchParams {
  const written = Object.entries(lookWritten(wanted, usualLook(told)))
  return new URLSearchParams(written.flatMap(([name, value]) => (value === null ? [] : [[name, value]])))
}

test('a look that is written into the address is read from it again', () => {
  const chance = new Chance(7)
  for (let round = 0; round < 500; round += 1) {
    const told = raster(chance.whole(1, 6))
    const band = () => chance.whole(1, told.info.count)
    const bands = chance.part() < 0.5 ? [band()] : [band(), band(), band()]
    const range = (): Range => {
      const low = chance.between(-1e4, 1e4)
      return [low, low + 10 ** chance.between(-6, 6)]
    }
    const ranges = chance.part() < 0.5 ? null : bands.map(range)
    const colours = bands.length === 1 && chance.part() < 0.5 ? chance.one(COLOUR_MAPS) : null
    const wanted = look(bands, ranges, colours)
    assert.deepEqual(lookFrom(addressOf(wanted, told), told), wanted)
  }
})

test('what is usual is not written into the address', () => {
  assert.equal(addressOf(usualLook(raster(3)), raster(3)).toString(), '')
  assert.equal(addressOf(look([1, 2, 3], null, 'viridis'), raster(3)).toString(), '', 'three bands have no colour map')
})
