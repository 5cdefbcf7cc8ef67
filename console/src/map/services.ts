/** The services behind the gateway: where a version is seen, and what its tiles are. */

import { useQuery } from '@tanstack/react-query'
import type { Feature } from 'geojson'

import { getJson, VIEW } from '../api/client'
import { untilAnswered } from '../live/every'
import { map as texts } from '../texts/map'
import { asBbox, onMap, outline, type Bbox } from './bbox'

const GRID = 'WebMercatorQuad'
const TILESETS = { raster: GRID, vector: `collections/features/tiles/${GRID}` }
/** From where on an address in a document of the services is theirs alone: an asset follows. */
const OF_AN_ASSET = /\/(preview|tiles|features)\/[0-9a-f]{32}\/.*$/
const DEFAULT_TILE_SIZE = 512
/** So many levels further out than TileJSON says, a raster is drawn too: a narrow map shows all of it from there. */
const LEVELS_OUT = 3

export type DataType = 'raster' | 'vector'

/** Where a version is seen. */
export interface Place {
  root: string
  /** The version to ask for; null where the address says it. */
  version: number | null
  /** What it shows; another one means other content at the same address. */
  revision: string
}

/** A version that waits for a decision; only those who may review see it. */
export function previewOf(assetId: string, ordinal: number, revision: number): Place {
  return { root: `${VIEW}/preview/${assetId}/${ordinal}`, version: null, revision: `${ordinal}.${revision}` }
}

/** What is in service: the latest version, or a certain one of an asset that serves all of them. */
export function serviceOf(
  assetId: string,
  dataType: DataType,
  shown: { ordinal: number; revision: number; isLatest: boolean },
): Place {
  const service = dataType === 'raster' ? 'tiles' : 'features'
  return {
    root: `${VIEW}/${service}/${assetId}`,
    version: shown.isLatest ? null : shown.ordinal,
    revision: `${shown.ordinal}.${shown.revision}`,
  }
}

/** The address of a document there. */
export function at(place: Place, path: string, parameters: [string, string][] = []): string {
  const version: [string, string][] = place.version === null ? [] : [['version', String(place.version)]]
  return withParameters(`${place.root}/${path}`, [...version, ...parameters])
}

export function withParameters(address: string, parameters: [string, string][]): string {
  if (parameters.length === 0) return address
  return `${address}${address.includes('?') ? '&' : '?'}${new URLSearchParams(parameters)}`
}

/** Tiles, and where there are some. */
export interface TileSet {
  /** Tells it from all others, also from those of another revision. */
  id: string
  dataType: DataType
  tiles: string
  tileSize: number
  minzoom: number
  maxzoom: number
  bounds: Bbox
  /** The outline of the bounds. */
  frame: Feature
  /** The layers in vector tiles. */
  layers: string[]
  /** How many features the tiles are made of; null when that is not known. */
  featureCount: number | null
}

interface TileJson {
  tiles: string[]
  minzoom?: number
  maxzoom?: number
  bounds?: number[]
  /** Across the antimeridian, where `bounds` go around the earth. */
  data_bounds?: number[]
  vector_layers?: { id: string }[]
  feature_count?: number
}

const WORLD: Bbox = [-180, -85, 180, 85]

export async function readTileSet(place: Place, dataType: DataType, signal?: AbortSignal): Promise<TileSet> {
  const told = await getJson<TileJson>(at(place, `${TILESETS[dataType]}/tilejson.json`), signal)
  const tiles = throughGateway(told.tiles[0] ?? '')
  const { minzoom = 0, maxzoom = 22 } = told
  const bounds = onMap(asBbox(told.data_bounds) ?? asBbox(told.bounds) ?? WORLD)
  return {
    id: `${place.root}@${place.revision}`,
    dataType,
    tiles,
    tileSize: Number(new URL(tiles).searchParams.get('tilesize')) || DEFAULT_TILE_SIZE,
    minzoom: dataType === 'raster' ? Math.max(0, minzoom - LEVELS_OUT) : minzoom,
    maxzoom,
    bounds,
    frame: outline(bounds),
    layers: (told.vector_layers ?? []).map((layer) => layer.id),
    featureCount: told.feature_count ?? null,
  }
}

/** The services name themselves as they know themselves; from here they are reached through the gateway. */
export function throughGateway(address: string): string {
  const found = OF_AN_ASSET.exec(address)
  if (found === null) throw new Error(texts.foreign(address))
  return `${location.origin}${VIEW}${found[0]}`
}

/** What the tiles of a place are; nothing is asked where there is no place. */
export function useTileSet(place: Place | null, dataType: DataType) {
  return useQuery({
    queryKey: ['view', place?.root, place?.revision, 'tiles'],
    queryFn: ({ signal }) => readTileSet(place!, dataType, signal),
    enabled: place !== null,
    staleTime: 'static',
    refetchInterval: untilAnswered,
  })
}
