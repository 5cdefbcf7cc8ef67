/** How a raster is looked at: its bands, its values from dark to bright, its colours. It stands in the address. */

import type { BandStatistics, RasterTold } from './documents'

export type Range = [low: number, high: number]

/** What is not stretched is seen as it is. */
export const BYTE: Range = [0, 255]

/** Three bands are red, green and blue; a single one is grey, or of a colour map. */
export const CHANNELS = ['red', 'green', 'blue'] as const

/** Names that the services know. */
export const COLOUR_MAPS = [
  'viridis',
  'magma',
  'terrain',
  'gist_earth',
  'ylgnbu',
  'rdylgn',
  'rdbu_r',
  'coolwarm',
] as const

export interface Look {
  bands: number[]
  /** For each band; null: as the data suggest. */
  ranges: Range[] | null
  colours: string | null
}

/** Red, green and blue where a raster says so, else its first three bands, or its only one. */
export function usualLook({ info }: RasterTold): Look {
  const named = CHANNELS.map((colour) => (info.colorinterp ?? []).indexOf(colour) + 1)
  if (named.every((band) => band > 0)) return { bands: named, ranges: null, colours: null }
  const described = CHANNELS.map((colour) => bandCalled(info.band_descriptions, colour))
  if (described.every((band) => band > 0)) return { bands: described, ranges: null, colours: null }
  return { bands: info.count >= 3 ? [1, 2, 3] : [1], ranges: null, colours: null }
}

function bandCalled(descriptions: [string, string][], name: string): number {
  return descriptions.findIndex(([, description]) => description?.toLowerCase() === name) + 1
}

/** The ranges that the values of this version suggest; both sides of a comparison are drawn with them. */
export function suggestedRanges({ info, statistics }: RasterTold, look: Look): Range[] | null {
  const isPicture = info.dtype === 'uint8' && look.bands.length === 3
  if (isPicture || statistics === null) return null
  const ranges = look.bands.map((band) => rangeOf(statistics[`b${band}`]))
  return ranges.every((range) => range !== null) ? ranges : null
}

function rangeOf(band: BandStatistics | undefined): Range | null {
  if (!band) return null
  return asRange(band.percentile_2, band.percentile_98) ?? asRange(band.min, band.max)
}

function asRange(low: number | null, high: number | null): Range | null {
  return low !== null && high !== null && low < high ? [low, high] : null
}

/** What the services are told. */
export function pictureParameters(told: RasterTold, look: Look): [string, string][] {
  const ranges = look.ranges ?? suggestedRanges(told, look)
  return [
    ...look.bands.map((band): [string, string] => ['bidx', String(band)]),
    ...(ranges ?? []).map((range): [string, string] => ['rescale', range.join()]),
    ...(look.colours && look.bands.length === 1 ? [['colormap_name', look.colours] as [string, string]] : []),
  ]
}

/** Reads a look from the address; what does not fit the raster is as usual. */
export function lookFrom(parameters: URLSearchParams, told: RasterTold): Look {
  const asked = numbers(parameters.get('bands'))
  const bands = areBands(asked, told.info.count) ? asked : usualLook(told).bands
  const ends = numbers(parameters.get('range'))
  const ranges = bands.map((_, place): Range => [ends[2 * place] ?? NaN, ends[2 * place + 1] ?? NaN])
  return {
    bands,
    ranges: ranges.every(([low, high]) => low < high) ? ranges : null,
    colours: COLOUR_MAPS.find((name) => name === parameters.get('colours')) ?? null,
  }
}

function areBands(bands: number[], count: number): boolean {
  const isBand = (band: number) => Number.isInteger(band) && band >= 1 && band <= count
  return [1, CHANNELS.length].includes(bands.length) && bands.every(isBand)
}

/** What the address says of a look; what is usual is not written. */
export function lookWritten(look: Look, usual: Look): Record<'bands' | 'range' | 'colours', string | null> {
  return {
    bands: look.bands.join() === usual.bands.join() ? null : look.bands.join(),
    range: look.ranges?.flat().join() ?? null,
    colours: look.bands.length === 1 ? look.colours : null,
  }
}

function numbers(text: string | null): number[] {
  return text ? text.split(',').map(Number) : []
}
