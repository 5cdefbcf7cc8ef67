import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Map as MapLibre } from 'maplibre-gl'

import type { Bbox } from '../../src/map/bbox'
import { extentsOverlay, shapesOf } from '../../src/map/extents'
import { featureOverlay, rasterOverlay } from '../../src/map/layers'
import { draw, NOTHING, together, type Overlay } from '../../src/map/overlay'
import type { Palette } from '../../src/map/palette'
import { outline } from '../../src/map/bbox'
import type { TileSet } from '../../src/map/services'

type Layer = Overlay['layers'][number]
type Source = Overlay['sources'][string]

/** What of MapLibre a drawing needs; it refuses what MapLibre refuses, and counts what costs something. */
class FakeMap {
  readonly sources = new Map<string, Source>()
  readonly layers = new Map<string, Layer>()
  made = 0

  addSource(id: string, source: Source): void {
    assert.ok(!this.sources.has(id), `there is a source ${id} already`)
    this.sources.set(id, structuredClone(source))
    this.made += 1
  }

  removeSource(id: string): void {
    assert.ok(this.sources.has(id), `there is no source ${id}`)
    for (const layer of this.layers.values()) assert.ok(!('source' in layer) || layer.source !== id, `${id} is in use`)
    this.sources.delete(id)
  }

  getSource(id: string) {
    const change = (values: object) => this.sources.set(id, { ...this.sources.get(id)!, ...values } as Source)
    return { setData: (data: unknown) => change({ data }), setTiles: (tiles: string[]) => change({ tiles }) }
  }

  addLayer(layer: Layer): void {
    assert.ok(!this.layers.has(layer.id), `there is a layer ${layer.id} already`)
    assert.ok(!('source' in layer) || this.sources.has(layer.source as string), `${layer.id} has no source`)
    this.layers.set(layer.id, structuredClone(layer))
    this.made += 1
  }

  getLayer(id: string): Layer | undefined {
    return this.layers.get(id)
  }

  removeLayer(id: string): void {
    assert.ok(this.layers.delete(id), `there is no layer ${id}`)
  }

  setPaintProperty(id: string, name: string, value: unknown): void {
    const layer = this.layers.get(id)!
    this.layers.set(id, { ...layer, paint: { ...layer.paint, [name]: value } } as Layer)
  }
}

const palette = (colour: string) => new Proxy({} as Palette, { get: (_, name) => `${colour} ${String(name)}` })
const LIGHT = palette('light')
const DARK = palette('dark')

const tileSet = (id: string, bounds: Bbox): TileSet => ({
  id,
  dataType: 'raster',
  tiles: `https://graticule.test/${id}/{z}/{x}/{y}`,
  tileSize: 256,
  minzoom: 0,
  maxzoom: 12,
  bounds,
  frame: outline(bounds),
  layers: ['features'],
  featureCount: null,
})

const HERE = tileSet('here', [1, 2, 3, 4])
const ACROSS = tileSet('across', [170, -20, 200, 10])
const BASE: Overlay = {
  sources: {},
  layers: [{ id: 'sea', type: 'background', paint: { 'background-color': 'blue' } }],
}
const raster = (tiles: TileSet, opacity = 1, bands = '1', colours = LIGHT) =>
  rasterOverlay(tiles, { parameters: [['bidx', bands]], opacity }, colours)
const features = (tiles: TileSet, colour: string | null = null) => featureOverlay(tiles, { colour, opacity: 1 }, LIGHT)
const extents = (selected: string | null, colours = LIGHT, east = 3) =>
  extentsOverlay(shapesOf([{ id: 'a', bbox: [1, 2, east, 4], label: 'A' }]), selected, colours)

/** Draws one after the other on the same map, and sees after each that it is what the map shows. */
function drawAll(...overlays: Overlay[]): FakeMap {
  const map = new FakeMap()
  overlays.reduce((before, after) => {
    draw(map as unknown as MapLibre, before, after)
    assert.deepEqual(Object.fromEntries(map.sources), after.sources)
    assert.deepEqual([...map.layers.values()], after.layers)
    return after
  }, NOTHING)
  return map
}

test('a map shows one drawing after another', () => {
  drawAll(
    BASE,
    together(BASE, raster(HERE)),
    together(BASE, raster(HERE, 0.5, '2', DARK)),
    together(BASE, raster(ACROSS)),
    together(BASE, features(HERE)),
    together(BASE, features(HERE, 'red')),
    together(BASE, features(ACROSS)),
    together(BASE, extents(null)),
    together(BASE, extents('a', DARK)),
    together(BASE, extents('a', DARK, 5)),
    NOTHING,
    together(BASE, raster(HERE)),
  )
})

test('what stays is changed, not made anew', () => {
  const once = drawAll(together(BASE, raster(HERE))).made
  const often = drawAll(
    together(BASE, raster(HERE)),
    together(BASE, raster(HERE, 0.3)),
    together(BASE, raster(HERE, 0.3, '3')),
  )
  assert.equal(often.made, once)
})

test('data across the antimeridian are drawn on both sides of it, and framed once', () => {
  const bounds = (overlay: Overlay) =>
    Object.values(overlay.sources).flatMap((source) => ('bounds' in source ? [source.bounds] : []))
  const both = [
    [170, -20, 180, 10],
    [-180, -20, -160, 10],
  ]
  assert.deepEqual<unknown>(bounds(raster(ACROSS)), both)
  assert.deepEqual<unknown>(bounds(features(ACROSS)), both)
  assert.equal(bounds(raster(HERE)).length, 1)
  assert.equal(Object.values(raster(ACROSS).sources).filter(({ type }) => type === 'geojson').length, 1)
})

test('the services are told how the picture is to be', () => {
  const [source] = Object.values(raster(HERE, 1, '4').sources)
  assert.ok(source && 'tiles' in source)
  assert.deepEqual(source.tiles, ['https://graticule.test/here/{z}/{x}/{y}?bidx=4'])
})

test('features of every shape can be picked, and rasters cannot', () => {
  const { layers, picked } = features(ACROSS)
  assert.deepEqual(
    picked,
    layers.map(({ id }) => id),
  )
  assert.equal(new Set(picked).size, 10)
  assert.deepEqual(together(BASE, raster(HERE)).picked, [])
  assert.deepEqual(together(BASE, extents(null)).picked, ['extents', 'small extents'])
})

test('of extents that lie on each other, the smaller are above', () => {
  const { boxes, points } = shapesOf([
    { id: 'small', bbox: [1, 1, 2, 2], label: 'S' },
    { id: 'large', bbox: [170, -40, -100, 40], label: 'L' },
    { id: 'middle', bbox: [0, 0, 5, 5], label: 'M' },
  ])
  for (const { features: shapes } of [boxes, points]) {
    assert.deepEqual(
      shapes.map(({ properties }) => properties?.id as string),
      ['large', 'middle', 'small'],
    )
    assert.deepEqual(
      shapes.map(({ properties }) => properties?.span as number),
      [90, 5, 1],
    )
  }
})
