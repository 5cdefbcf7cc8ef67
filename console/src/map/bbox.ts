/** Boxes of degrees: west, south, east, north. One whose east is less than its west goes across the antimeridian. */

import type { Feature, Polygon } from 'geojson'

export type Bbox = [west: number, south: number, east: number, north: number]

const TURN = 360
const HALF_TURN = 180
/** As far as a map in Mercator's projection goes. */
const LAST_LATITUDE = 85

/** Reads a box as the API gives it; null when there is none. */
export function asBbox(numbers: readonly number[] | null | undefined): Bbox | null {
  return numbers?.length === 4 && numbers.every(Number.isFinite) ? (numbers as Bbox) : null
}

/** The same box with its east behind its west, as maps want it: it may end beyond 180°. */
export function unrolled([west, south, east, north]: Bbox): Bbox {
  return [west, south, west > east ? east + TURN : east, north]
}

/** What of a box a map can show. */
export function onMap(bbox: Bbox): Bbox {
  const [west, south, east, north] = unrolled(bbox)
  return [west, Math.max(south, -LAST_LATITUDE), east, Math.min(north, LAST_LATITUDE)]
}

/** A box that a map shows, in degrees from -180 to 180 again. */
export function rolled([west, south, east, north]: Bbox): Bbox {
  if (east - west >= TURN) return [-HALF_TURN, south, HALF_TURN, north]
  return [wrapped(west), south, wrapped(east), north]
}

function wrapped(longitude: number): number {
  const turned = (longitude + HALF_TURN) % TURN
  return (turned < 0 ? turned + TURN : turned) - HALF_TURN
}

/** A box as one or two boxes within the world: MapLibre takes the bounds of a source for such. */
export function inOneWorld(bbox: Bbox): Bbox[] {
  const [west, south, east, north] = unrolled(bbox)
  if (east <= HALF_TURN) return [[west, south, east, north]]
  return [
    [west, south, HALF_TURN, north],
    [-HALF_TURN, south, east - TURN, north],
  ]
}

/** How far a box goes, in degrees, along its longer side. */
export function span(bbox: Bbox): number {
  const [west, south, east, north] = unrolled(bbox)
  return Math.max(east - west, north - south)
}

export function middle(bbox: Bbox): [number, number] {
  const [west, south, east, north] = unrolled(bbox)
  return [(west + east) / 2, (south + north) / 2]
}

export function outline(bbox: Bbox): Feature<Polygon> {
  const [west, south, east, north] = onMap(bbox)
  const ring = [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ]
  return { type: 'Feature', properties: {}, geometry: { type: 'Polygon', coordinates: [ring] } }
}

/** The smallest box around all of them: it leaves the widest gap between them out, wherever on the globe that is. */
export function around(boxes: readonly Bbox[]): Bbox | null {
  if (boxes.length === 0) return null
  const south = Math.min(...boxes.map((box) => box[1]))
  const north = Math.max(...boxes.map((box) => box[3]))
  const [west, east] = withoutWidestGap(boxes.map((box) => [wrapped(box[0]), unrolled(box)[2] - box[0]]))
  return [west, south, east, north]
}

/** Takes the west and the width of each; gives the west and the east of all. */
function withoutWidestGap(parts: [west: number, width: number][]): [number, number] {
  let end = Math.max(...parts.map(([west, width]) => west + width)) - TURN // as far as they come around
  let widest = { gap: 0, west: -HALF_TURN, east: HALF_TURN }
  for (const [west, width] of parts.toSorted(([one], [other]) => one - other)) {
    if (west - end > widest.gap) widest = { gap: west - end, west, east: wrapped(end) }
    end = Math.max(end, west + width)
  }
  return [widest.west, widest.east]
}
