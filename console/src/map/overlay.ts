/** What is drawn on a map: sources and layers as MapLibre's style has them. A map is told only what has changed. */

import type { GeoJSONSource, Map, RasterTileSource, VectorTileSource } from 'maplibre-gl'
import type {
  GeoJSONSourceSpecification,
  LayerSpecification,
  RasterSourceSpecification,
  VectorSourceSpecification,
} from 'maplibre-gl'

type Tiled = RasterSourceSpecification | VectorSourceSpecification

export interface Overlay {
  /** A source of tiles keeps its id only while nothing but the address of its tiles changes. */
  sources: Record<string, Tiled | GeoJSONSourceSpecification>
  /** From the lowest to the highest. */
  layers: LayerSpecification[]
  /** The layers whose features can be picked. */
  picked?: string[]
  /** The tiles whose features are counted. */
  counted?: CountedTiles
}

export interface CountedTiles {
  tiles: string
  minzoom: number
  maxzoom: number
  /** How many features there are; null when that is not known. */
  featureCount: number | null
}

export const NOTHING: Overlay = { sources: {}, layers: [] }

export function together(...overlays: Overlay[]): Overlay {
  return {
    sources: Object.assign({}, ...overlays.map((overlay) => overlay.sources)),
    layers: overlays.flatMap((overlay) => overlay.layers),
    picked: overlays.flatMap((overlay) => overlay.picked ?? []),
    counted: overlays.find((overlay) => overlay.counted)?.counted,
  }
}

/** Makes a map that shows `before` show `after`. */
export function draw(map: Map, before: Overlay, after: Overlay): void {
  const wanted = new Set(after.layers.map((layer) => layer.id))
  for (const { id } of before.layers) if (!wanted.has(id)) map.removeLayer(id)
  for (const id of Object.keys(before.sources)) if (!(id in after.sources)) map.removeSource(id)
  for (const [id, source] of Object.entries(after.sources)) drawSource(map, id, before.sources[id], source)
  for (const layer of after.layers) drawLayer(map, layer)
}

function drawSource(map: Map, id: string, before: Overlay['sources'][string] | undefined, after: typeof before): void {
  if (after === undefined) return
  if (before === undefined) {
    map.addSource(id, after)
  } else if (after.type === 'geojson') {
    if (before.type === 'geojson' && before.data !== after.data) map.getSource<GeoJSONSource>(id)?.setData(after.data)
  } else if (before.type === after.type && before.tiles?.[0] !== after.tiles?.[0]) {
    map.getSource<RasterTileSource | VectorTileSource>(id)?.setTiles(after.tiles ?? [])
  }
}

function drawLayer(map: Map, layer: LayerSpecification): void {
  if (!map.getLayer(layer.id)) {
    map.addLayer(layer)
    return
  }
  const paint = map.setPaintProperty.bind(map) as (id: string, name: string, value: unknown) => void
  for (const [name, value] of Object.entries(layer.paint ?? {})) paint(layer.id, name, value)
}
