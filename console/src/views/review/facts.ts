/** What is known of two versions, side by side. */

import type { LayerDescribed, ValidationReport } from '../../api/model'
import { unrolled } from '../../map/bbox'
import { asBbox } from '../../map'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { count, dateTimeUtc } from '../../ui/format'
import type { FeaturesTold, RasterInfo } from './documents'

/** A name and a value, as it is read; null when it is not known. */
export type Entry = [name: string, value: string | null]

export interface Fact {
  name: string
  here: string | null
  there: string | null
  /** Null: that cannot be told. */
  differs: boolean | null
}

const FIGURE = new Intl.NumberFormat('en', { maximumSignificantDigits: 6 })
const EPSG = /EPSG\/0\/(\d+)$/

/** A number as it is read; what is missing is told so. */
export function figure(value: number | null): string {
  return value === null ? shared.none : FIGURE.format(value)
}

/** What is told of one side; null when that is not told (yet), or not to this caller. */
export type Told = Entry[] | null

/** Puts what is known of either beside each other; without another side (undefined) nothing is compared. */
export function compared(here: Told, there: Told | undefined): Fact[] {
  const [known, others] = [new Map(here), new Map(there)]
  const names = [...new Set([...known.keys(), ...others.keys()])]
  const canDiffer = here !== null && there !== null && there !== undefined
  return names
    .map((name) => ({ name, here: known.get(name) ?? null, there: others.get(name) ?? null }))
    .filter((fact) => fact.here !== null || fact.there !== null)
    .map((fact) => ({ ...fact, differs: canDiffer ? fact.here !== fact.there : null }))
}

export function descriptionEntries(described: LayerDescribed | undefined): Told {
  if (described === undefined) return null
  const { facts } = texts
  const time = [described.temporal_start, described.temporal_end].map((at) => (at ? dateTimeUtc(at) : null))
  return [
    [facts.title, described.title ?? null],
    [facts.description, described.description ?? null],
    [facts.keywords, described.keywords?.join(', ') || null],
    [facts.licence, described.licence ?? null],
    [facts.attribution, described.attribution ?? null],
    [facts.time, time.some(Boolean) ? time.map((at) => at ?? shared.none).join(' – ') : null],
  ]
}

export function extentEntries(bbox: number[] | null): Entry[] {
  return [[texts.facts.extent, bbox && bbox.map((degrees) => degrees.toFixed(4)).join(', ')]]
}

export function rasterEntries(info: RasterInfo): Entry[] {
  const { facts } = texts
  const names = info.band_descriptions.map(([name, description]) => description || name)
  return [
    [facts.crs, crsName(info.crs)],
    [facts.size, texts.pixels(count(info.width), count(info.height))],
    [facts.resolution, resolution(info)],
    [facts.bands, `${info.count}: ${names.join(', ')}`],
    [facts.dataType, info.dtype],
    [facts.noData, noData(info)],
  ]
}

/** How the services name a CRS becomes how people do. */
export function crsName(address: string | null): string | null {
  const code = EPSG.exec(address ?? '')?.[1]
  return code ? `EPSG:${code}` : address
}

function resolution({ bounds, width, height, crs }: RasterInfo): string | null {
  const bbox = asBbox(bounds)
  if (bbox === null) return null
  const [west, south, east, north] = unrolled(bbox)
  const unit = crsName(crs) === 'EPSG:4326' ? '°' : ''
  return `${figure((east - west) / width)}${unit} × ${figure((north - south) / height)}${unit}`
}

function noData({ nodata_type: kind, nodata_value: value }: RasterInfo): string {
  if (kind === 'Nodata') return String(value)
  return texts.noData[kind] ?? kind
}

export function featureEntries(told: FeaturesTold): Entry[] {
  const { facts } = texts
  return [
    [facts.features, told.count === null ? null : count(told.count)],
    [facts.geometry, told.geometry],
    [facts.columns, told.columns.map(({ name, type }) => `${name} (${type})`).join(', ')],
  ]
}

/** The columns that are new or gone, or of another type. */
export function changedColumns(here: FeaturesTold, there: FeaturesTold): string {
  const named = ({ columns }: FeaturesTold) => columns.map(({ name, type }) => `${name} (${type})`)
  const [now, before] = [named(here), named(there)]
  const added = now.filter((column) => !before.includes(column)).map((column) => `+ ${column}`)
  const gone = before.filter((column) => !now.includes(column)).map((column) => `− ${column}`)
  return [...added, ...gone].join(', ')
}

/** What the file was that was sent. */
export function fileEntries(report: ValidationReport | null): Told {
  if (report === null) return null
  const known = report.facts ?? {}
  const { facts } = texts
  const text = (value: unknown) => (value === null || value === undefined ? null : String(value))
  const size = typeof known.width === 'number' ? texts.pixels(count(known.width), count(known.height as number)) : null
  const features = typeof known.feature_count === 'number' ? count(known.feature_count) : null
  const entries: Entry[] = [
    [facts.format, text(known.driver)],
    [facts.crs, text(known.crs_code ?? known.crs)],
    [facts.size, size],
    [facts.bands, text(known.band_count)],
    [facts.dataType, text(known.dtype)],
    [facts.noData, text(known.nodata)],
    [facts.features, features],
    [facts.geometry, text(known.geometry_type)],
    [facts.compression, text(known.compression)],
  ]
  return entries.filter(([, value]) => value !== null)
}
