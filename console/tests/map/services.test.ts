import assert from 'node:assert/strict'
import { test } from 'node:test'

import { at, previewOf, readTileSet, serviceOf, throughGateway, withParameters } from '../../src/map/services'
import { answerWith, json, ORIGIN, told } from '../browser'

const ASSET = '0123456789abcdef0123456789abcdef'
const LATEST = { ordinal: 3, revision: 2, isLatest: true }

test('a version is seen through the gateway, by its preview or in service', () => {
  assert.equal(at(previewOf(ASSET, 3, 2), 'info'), `/api/view/preview/${ASSET}/3/info`)
  assert.equal(at(serviceOf(ASSET, 'raster', LATEST), 'info'), `/api/view/tiles/${ASSET}/info`)
  assert.equal(at(serviceOf(ASSET, 'vector', LATEST), 'info'), `/api/view/features/${ASSET}/info`)
})

test('a version that is not the latest is asked for by its number, also the first', () => {
  const first = serviceOf(ASSET, 'raster', { ordinal: 0, revision: 1, isLatest: false })
  assert.equal(at(first, 'info'), `/api/view/tiles/${ASSET}/info?version=0`)
  assert.equal(
    at(first, 'x', [
      ['bidx', '1'],
      ['bidx', '2'],
    ]),
    `/api/view/tiles/${ASSET}/x?version=0&bidx=1&bidx=2`,
  )
})

test('other content has another name', () => {
  const names = [previewOf(ASSET, 1, 1), previewOf(ASSET, 1, 2), serviceOf(ASSET, 'raster', LATEST)].map(
    ({ root, revision }) => `${root}@${revision}`,
  )
  assert.equal(new Set(names).size, names.length)
})

test('parameters are added to those that are there', () => {
  assert.equal(withParameters('/a', []), '/a')
  assert.equal(withParameters('/a', [['x', '1,2']]), '/a?x=1%2C2')
  assert.equal(withParameters('/a/{z}?t=1', [['x', 'a b&c']]), '/a/{z}?t=1&x=a+b%26c')
})

test('addresses of the services lead through the gateway, however they name themselves', () => {
  const rest = `/${ASSET}/3/WebMercatorQuad/{z}/{x}/{y}?tilesize=512`
  for (const base of ['http://10.0.0.7:8005', 'https://tiles.example/base/path', '', 'http://preview/tiles/x']) {
    assert.equal(throughGateway(`${base}/preview${rest}`), `${ORIGIN}/api/view/preview${rest}`)
  }
  assert.equal(throughGateway(`http://s/tiles/${ASSET}/x`), `${ORIGIN}/api/view/tiles/${ASSET}/x`)
  assert.equal(throughGateway(`http://s/features/${ASSET}/x`), `${ORIGIN}/api/view/features/${ASSET}/x`)
})

test('what is no address of the services is not asked for', () => {
  for (const address of [
    '',
    'https://elsewhere.example/x.png',
    `http://s/admin/${ASSET}/x`,
    'http://s/tiles/short/x',
  ]) {
    assert.throws(() => throughGateway(address), /no address of the services/)
  }
})

test('the tiles of a raster are those that its TileJSON names', async (context) => {
  const tiles = `http://10.0.0.7/preview/${ASSET}/3/tiles/WebMercatorQuad/{z}/{x}/{y}?tilesize=256`
  const asked = answerWith(context, () => json({ tiles: [tiles], minzoom: 5, maxzoom: 12, bounds: [1, -90, 3, 4] }))
  const found = await readTileSet(previewOf(ASSET, 3, 2), 'raster')
  assert.deepEqual(asked.map(told), [`GET /api/view/preview/${ASSET}/3/WebMercatorQuad/tilejson.json`])
  assert.equal(found.tiles, tiles.replace('http://10.0.0.7', `${ORIGIN}/api/view`))
  assert.ok(found.tiles.endsWith('/{z}/{x}/{y}?tilesize=256'), 'the map fills in the place of a tile')
  const { tileSize, minzoom, maxzoom, bounds, layers } = found
  assert.deepEqual(
    { tileSize, minzoom, maxzoom, bounds, layers },
    {
      tileSize: 256,
      minzoom: 2,
      maxzoom: 12,
      bounds: [1, -85, 3, 4],
      layers: [],
    },
  )
})

test('the tiles of features are those that their TileJSON names, with its layers', async (context) => {
  const tiles = `http://s/features/${ASSET}/collections/features/tiles/WebMercatorQuad/{z}/{x}/{y}`
  const asked = answerWith(context, () => json({ tiles: [tiles], minzoom: 2, vector_layers: [{ id: 'features' }] }))
  const found = await readTileSet(serviceOf(ASSET, 'vector', { ...LATEST, isLatest: false }), 'vector')
  assert.deepEqual(asked.map(told), [
    `GET /api/view/features/${ASSET}/collections/features/tiles/WebMercatorQuad/tilejson.json?version=3`,
  ])
  const { tileSize, minzoom, maxzoom, bounds, layers } = found
  assert.deepEqual(
    { tileSize, minzoom, maxzoom, bounds, layers },
    {
      tileSize: 512,
      minzoom: 2,
      maxzoom: 22,
      bounds: [-180, -85, 180, 85],
      layers: ['features'],
    },
  )
})

test('data across the antimeridian are where they are, not around the earth', async (context) => {
  const tiles = [`http://s/tiles/${ASSET}/{z}/{x}/{y}`]
  answerWith(context, () => json({ tiles, bounds: [-180, -20, 180, 10], data_bounds: [170, -20, -160, 10] }))
  const found = await readTileSet(serviceOf(ASSET, 'raster', LATEST), 'raster')
  assert.deepEqual(found.bounds, [170, -20, 200, 10])
})

test('without tiles there is no tile set', async (context) => {
  answerWith(context, () => json({ tiles: [] }))
  await assert.rejects(readTileSet(serviceOf(ASSET, 'raster', LATEST), 'raster'), /no address of the services/)
})
