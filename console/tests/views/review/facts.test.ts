import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { LayerDescribed, ValidationReport } from '../../../src/api/model'
import type { FeaturesTold, RasterInfo } from '../../../src/views/review/documents'
import {
  changedColumns,
  compared,
  crsName,
  descriptionEntries,
  extentEntries,
  featureEntries,
  figure,
  fileEntries,
  rasterEntries,
  type Told,
} from '../../../src/views/review/facts'

const valuesOf = (told: Told) => Object.fromEntries(told ?? [])

test('what is known of either side stands beside each other', () => {
  const facts = compared(
    [
      ['CRS', 'EPSG:4326'],
      ['Size', '10'],
      ['Title', null],
      ['Licence', null],
    ],
    [
      ['Size', '12'],
      ['CRS', 'EPSG:4326'],
      ['Title', 'Old'],
      ['Format', 'GTiff'],
    ],
  )
  assert.deepEqual(facts, [
    { name: 'CRS', here: 'EPSG:4326', there: 'EPSG:4326', differs: false },
    { name: 'Size', here: '10', there: '12', differs: true },
    { name: 'Title', here: null, there: 'Old', differs: true },
    { name: 'Format', here: null, there: 'GTiff', differs: true },
  ])
})

test('what is not told yet is not taken for different', () => {
  const here: Told = [['CRS', 'EPSG:4326']]
  const unknown = [{ name: 'CRS', here: 'EPSG:4326', there: null, differs: null }]
  assert.deepEqual(compared(here, null), unknown)
  assert.deepEqual(compared(here, undefined), unknown)
  assert.deepEqual(compared(null, here), [{ name: 'CRS', here: null, there: 'EPSG:4326', differs: null }])
  assert.deepEqual(compared(null, null), [])
})

test('a raster is told as people read it', () => {
  const info: RasterInfo = {
    bounds: [10, 0, 12, 1],
    crs: 'http://www.opengis.net/def/crs/EPSG/0/4326',
    band_descriptions: [
      ['b1', 'height'],
      ['b2', ''],
    ],
    dtype: 'int16',
    nodata_type: 'Nodata',
    nodata_value: -9999,
    count: 2,
    width: 2000,
    height: 500,
  }
  assert.deepEqual(valuesOf(rasterEntries(info)), {
    CRS: 'EPSG:4326',
    Size: '2,000 × 500 pixels',
    Resolution: '0.001° × 0.002°',
    Bands: '2: height, b2',
    'Data type': 'int16',
    'No data': '-9999',
  })
  const across = { ...info, bounds: [179, 0, -179, 1] }
  assert.equal(valuesOf(rasterEntries(across)).Resolution, '0.001° × 0.002°')
  assert.equal(valuesOf(rasterEntries({ ...info, nodata_type: 'Mask' }))['No data'], 'by a mask')
  assert.equal(valuesOf(rasterEntries({ ...info, nodata_type: 'Later' }))['No data'], 'Later')
})

test('a CRS is named by its code where it has one', () => {
  assert.equal(crsName('http://www.opengis.net/def/crs/EPSG/0/32633'), 'EPSG:32633')
  assert.equal(crsName('http://www.opengis.net/def/crs/OGC/1.3/CRS84'), 'http://www.opengis.net/def/crs/OGC/1.3/CRS84')
  assert.equal(crsName(null), null)
})

test('features are told by their number, shape and columns', () => {
  const told: FeaturesTold = { count: 1234, geometry: 'polygon', columns: [{ name: 'id', type: 'integer' }] }
  assert.deepEqual(valuesOf(featureEntries(told)), { Features: '1,234', Geometry: 'polygon', Columns: 'id (integer)' })
  assert.equal(valuesOf(featureEntries({ ...told, count: null })).Features, null)
  assert.equal(valuesOf(featureEntries({ ...told, count: 0 })).Features, '0')
})

test('columns that are new, gone, or of another type are told', () => {
  const of = (...columns: [string, string][]): FeaturesTold => ({
    count: 1,
    geometry: null,
    columns: columns.map(([name, type]) => ({ name, type })),
  })
  const changed = changedColumns(
    of(['id', 'integer'], ['b', 'string']),
    of(['id', 'number'], ['b', 'string'], ['c', 'x']),
  )
  assert.equal(changed, '+ id (integer), − id (number), − c (x)')
  assert.equal(changedColumns(of(['a', 'x'], ['b', 'y']), of(['b', 'y'], ['a', 'x'])), '')
})

test('a file is told as far as its report does', () => {
  const report = (facts: Record<string, unknown>) =>
    ({ outcome: 'ok', findings: [], facts }) as unknown as ValidationReport
  assert.equal(fileEntries(null), null)
  assert.deepEqual(fileEntries(report({})), [])
  const raster = {
    driver: 'GTiff',
    crs_code: 'EPSG:4326',
    crs: 'WGS 84',
    width: 2000,
    height: 10,
    nodata: 0,
    band_count: 1,
  }
  assert.deepEqual(valuesOf(fileEntries(report(raster))), {
    Format: 'GTiff',
    CRS: 'EPSG:4326',
    Size: '2,000 × 10 pixels',
    Bands: '1',
    'No data': '0',
  })
  const vector = { driver: 'GPKG', crs: 'WGS 84', feature_count: 0, geometry_type: 'Polygon', nodata: null }
  assert.deepEqual(valuesOf(fileEntries(report(vector))), {
    Format: 'GPKG',
    CRS: 'WGS 84',
    Features: '0',
    Geometry: 'Polygon',
  })
})

test('a description is told, and not before it was read', () => {
  assert.equal(descriptionEntries(undefined), null)
  const described = {
    title: 'Relief',
    keywords: [],
    temporal_start: '2026-03-01T12:00:00Z',
  } as unknown as LayerDescribed
  const told = valuesOf(descriptionEntries(described))
  assert.equal(told.Title, 'Relief')
  assert.equal(told.Keywords, null)
  assert.equal(told.Time, '1 Mar 2026, 12:00:00 UTC – —')
  assert.equal(valuesOf(descriptionEntries({} as LayerDescribed)).Time, null)
})

test('figures have as many digits as matter', () => {
  const figures = [0, 0.1 + 0.2, 1234567.891, -9999, 1e-9, null].map(figure)
  assert.deepEqual(figures, ['0', '0.3', '1,234,570', '-9,999', '0.000000001', '—'])
  assert.deepEqual(valuesOf(extentEntries([1, -2.00004, 3.00006, 4])), {
    'Extent (W, S, E, N)': '1.0000, -2.0000, 3.0001, 4.0000',
  })
  assert.deepEqual(compared(extentEntries(null), extentEntries(null)), [])
})
