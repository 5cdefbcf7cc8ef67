/** The land of the world, of the bundle: a map that asks no other host. */

import type { Feature, FeatureCollection, MultiLineString, MultiPolygon, Position } from 'geojson'
import { feature } from 'topojson-client'
import type { Topology } from 'topojson-specification'
import address from 'world-atlas/land-50m.json?url'

const GRID_STEP = 30
const LAST_LATITUDE = 85
const LAST_PARALLEL = 60
const POLE = 90
const TURN = 360
const HALF_TURN = 180

export interface Land {
  areas: Feature<MultiPolygon>
  coasts: Feature<MultiLineString>
}

let loaded: Promise<Land> | undefined

/** Gets the land, once for all maps. */
export function land(): Promise<Land> {
  loaded ??= readLand().catch((error: unknown) => {
    loaded = undefined
    throw error
  })
  return loaded
}

async function readLand(): Promise<Land> {
  const response = await fetch(address)
  if (!response.ok) throw new Error(`The coastlines were not found (${response.status}).`)
  const topology = (await response.json()) as Topology
  const found = feature(topology, topology.objects.land!) as FeatureCollection<MultiPolygon>
  return flat(found.features.flatMap(({ geometry }) => geometry.coordinates))
}

/** The atlas is made for a globe: on a flat map, a shape across the antimeridian has to go on beyond 180°. */
function flat(polygons: Position[][][]): Land {
  const unrolled = polygons.map((rings) => rings.map(withoutLeaps))
  return {
    areas: asFeature({ type: 'MultiPolygon', coordinates: unrolled.map((rings) => rings.map(closed)) }),
    coasts: asFeature({ type: 'MultiLineString', coordinates: unrolled.flat() }),
  }
}

function withoutLeaps(ring: Position[]): Position[] {
  let turns = 0
  const unrolled = ring.map(([longitude, latitude], place) => {
    const step = place === 0 ? 0 : longitude! - ring[place - 1]![0]!
    if (Math.abs(step) > HALF_TURN) turns -= Math.sign(step)
    return [longitude! + turns * TURN, latitude!]
  })
  return nearest(unrolled)
}

/** The same ring with its middle within 180°, where the lakes of a continent are, too. */
function nearest(ring: Position[]): Position[] {
  const longitudes = ring.map(([longitude]) => longitude!)
  const middle = (Math.min(...longitudes) + Math.max(...longitudes)) / 2
  const away = TURN * Math.round(middle / TURN)
  return away === 0 ? ring : ring.map(([longitude, latitude]) => [longitude! - away, latitude!])
}

/** A ring around the earth ends a turn away from where it began: it is closed at its pole. */
function closed(ring: Position[]): Position[] {
  const [first, last] = [ring[0]!, ring.at(-1)!]
  if (first[0] === last[0]) return ring
  const pole = Math.sign(first[1]!) * POLE
  return [...ring, [last[0]!, pole], [first[0]!, pole], first]
}

function asFeature<Shape extends MultiPolygon | MultiLineString>(geometry: Shape): Feature<Shape> {
  return { type: 'Feature', properties: {}, geometry }
}

/** Meridians and parallels. */
export function grid(): Feature<MultiLineString> {
  const steps = (end: number) =>
    Array.from({ length: (2 * end) / GRID_STEP + 1 }, (_, place) => place * GRID_STEP - end)
  const meridians = steps(HALF_TURN).map((longitude) => [
    [longitude, -LAST_LATITUDE],
    [longitude, LAST_LATITUDE],
  ])
  const parallels = steps(LAST_PARALLEL).map((latitude) => [
    [-HALF_TURN, latitude],
    [HALF_TURN, latitude],
  ])
  return asFeature({ type: 'MultiLineString', coordinates: [...meridians, ...parallels] })
}
