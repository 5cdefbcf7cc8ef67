/** What the services tell of a version: of a raster its form and statistics, of features their number and columns. */

import { useQuery } from '@tanstack/react-query'

import { getJson } from '../../api/client'
import { Problem } from '../../api/problem'
import { untilAnswered } from '../../live/every'
import { at, type Place } from '../../map'

export interface RasterInfo {
  bounds: number[]
  crs: string | null
  band_descriptions: [name: string, description: string][]
  dtype: string
  nodata_type: string
  nodata_value?: number | string | null
  colorinterp?: string[] | null
  count: number
  width: number
  height: number
}

/** Of a band without any data nothing but that can be told: its numbers are null. */
export interface BandStatistics {
  min: number | null
  max: number | null
  mean: number | null
  std: number | null
  valid_percent: number | null
  percentile_2: number | null
  percentile_98: number | null
  description?: string
}

export interface RasterTold {
  info: RasterInfo
  /** By band: `b1`, `b2`, …; null when they cannot be had. */
  statistics: Record<string, BandStatistics> | null
}

export interface FeaturesTold {
  count: number | null
  geometry: string | null
  columns: { name: string; type: string }[]
}

/** Whether no band has any data; false where there are no statistics to tell. */
export function isWithoutData({ statistics }: RasterTold): boolean {
  const bands = Object.values(statistics ?? {})
  return bands.length > 0 && bands.every(({ min, valid_percent }) => min === null || valid_percent === 0)
}

interface Queryable {
  title?: string
  type?: string
  format?: string
}

const FOREVER = { staleTime: 'static', refetchInterval: untilAnswered } as const
/** Statistics of so many bands are read at most: services refuse more. */
const MOST_BANDS = 16

export function useRasterTold(place: Place | null) {
  return useQuery({
    queryKey: ['view', place?.root, place?.revision, 'raster'],
    queryFn: ({ signal }) => readRaster(place!, signal),
    enabled: place !== null,
    ...FOREVER,
  })
}

export async function readRaster(place: Place, signal: AbortSignal): Promise<RasterTold> {
  const info = await getJson<RasterInfo>(at(place, 'info'), signal)
  const bands: [string, string][] = Array.from({ length: Math.min(info.count, MOST_BANDS) }, (_, index) => [
    'bidx',
    String(index + 1),
  ])
  const statistics = getJson<Record<string, BandStatistics>>(at(place, 'statistics', bands), signal)
  return { info, statistics: await statistics.catch(orNothing) }
}

/** Data that are too large for statistics are still looked at. */
function orNothing(error: unknown): null {
  if (error instanceof Problem && error.status >= 400) return null
  throw error
}

export function useFeaturesTold(place: Place | null) {
  return useQuery({
    queryKey: ['view', place?.root, place?.revision, 'features'],
    queryFn: ({ signal }) => readFeatures(place!, signal),
    enabled: place !== null,
    ...FOREVER,
  })
}

export async function readFeatures(place: Place, signal: AbortSignal): Promise<FeaturesTold> {
  const collection = 'collections/features'
  const [schema, page] = await Promise.all([
    getJson<{ properties: Record<string, Queryable> }>(at(place, `${collection}/queryables`), signal),
    getJson<{ numberMatched?: number }>(at(place, `${collection}/items`, [['limit', '1']]), signal),
  ])
  const all = Object.entries(schema.properties)
  const geometry = all.find(([, { format }]) => format?.startsWith('geometry-'))?.[1].format
  return {
    count: page.numberMatched ?? null,
    geometry: geometry?.replace('geometry-', '') ?? null,
    columns: all.filter(([, { type }]) => type).map(([name, { type, format }]) => ({ name, type: format ?? type! })),
  }
}
