/** How many of how many features the tiles in view show; their headers say it. */

import { map as texts } from '../texts/map'

/** The attribute of a shape that stands for several features. */
export const MERGED_COUNT = 'graticule:count'
/** Tiles are fetched by a protocol of our own: MapLibre does not hand over headers. */
export const PROTOCOL = 'counted'

export interface TileCounts {
  shown: number
  merged: number
  /** Infinity where there are too many to be counted. */
  total: number
}

const ADDRESS = /^(.*)\/(\d+)\/(\d+)\/(\d+)(?:\.\w+)?(?:\?.*)?$/
const MAX_KEPT = 2000
const known = new Map<string, TileCounts>()

export function counted(tiles: string): string {
  return `${PROTOCOL}://${tiles}`
}

/** Fetches a tile, and keeps what its headers say. */
export async function fetchCounted(url: string, signal: AbortSignal): Promise<{ data: ArrayBuffer }> {
  const address = url.slice(PROTOCOL.length + 3)
  const answer = await fetch(address, { signal })
  if (!answer.ok) throw Object.assign(new Error(texts.answered(answer.status)), { status: answer.status })
  keep(address, readCounts(answer.headers))
  return { data: await answer.arrayBuffer() }
}

function readCounts(headers: Headers): TileCounts {
  const count = (name: string, otherwise: number) => Number(headers.get(`Graticule-Features-${name}`) ?? otherwise)
  const isCounted = headers.has('Graticule-Features-Shown')
  return { shown: count('Shown', 0), merged: count('Merged', 0), total: count('Total', isCounted ? Infinity : 0) }
}

export function keep(address: string, counts: TileCounts): void {
  known.delete(address)
  known.set(address, counts)
  if (known.size > MAX_KEPT) known.delete(known.keys().next().value!)
}

export interface View {
  zoom: number
  /** West, south, east, north; beyond 180 across the antimeridian. */
  bounds: readonly number[]
}

/** Sums up the tiles of one address in view. */
export function countsInView(tiles: string, { zoom, bounds }: View): TileCounts {
  const root = ADDRESS.exec(tiles.replace('{z}/{x}/{y}', '0/0/0'))?.[1]
  const sum: TileCounts = { shown: 0, merged: 0, total: 0 }
  for (const [address, counts] of known) {
    const [, where, z, x, y] = ADDRESS.exec(address) ?? []
    if (where !== root || Number(z) !== zoom || !isInView(zoom, Number(x), Number(y), bounds)) continue
    for (const name of ['shown', 'merged', 'total'] as const) sum[name] += counts[name]
  }
  return sum
}

function isInView(zoom: number, x: number, y: number, [west, south, east, north]: readonly number[]): boolean {
  const size = 2 ** zoom
  const column = (longitude: number) => (longitude / 360 + 0.5) * size
  const row = (latitude: number) => (0.5 - Math.asinh(Math.tan((latitude * Math.PI) / 180)) / (2 * Math.PI)) * size
  // The world goes on beyond its edges, and a tile may be seen in each.
  const first = Math.ceil((column(west!) - x - 1) / size)
  return first * size + x < column(east!) && row(north!) < y + 1 && row(south!) > y
}

/** What is told of it; null when every feature in view is shown itself. Those on an edge are in two tiles. */
export function countText({ shown, merged, total }: TileCounts, all: number | null): string | null {
  const hidden = total - shown - merged
  if (merged + hidden === 0) return null
  if (hidden === Infinity) return texts.uncounted
  const inView = Math.min(total, all ?? total)
  return texts.counts(Math.max(0, inView - merged - hidden), inView, merged, hidden)
}
