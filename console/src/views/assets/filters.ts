/** The search of assets: it lives in the address, under the names that the gateway has for its parts. */

import type { paths } from '../../api/gateway'
import { rolled, type Bbox } from '../../map/bbox'

export type AssetQuery = NonNullable<paths['/api/assets']['get']['parameters']['query']>
export type Refs = Record<string, string | number>

const TEXTS = ['q', 'platform', 'refs', 'data_type', 'clearance_state', 'approval_state', 'processing_state', 'bbox']
const FILTERS = [...TEXTS, 'deleted']
const WHOLE_NUMBER = /^-?(0|[1-9]\d{0,14})$/

/** A change of the address that clears the search. */
export const NO_FILTERS = Object.fromEntries(FILTERS.map((name) => [name, null]))

export function isFiltered(parameters: URLSearchParams): boolean {
  return FILTERS.some((name) => parameters.has(name))
}

/** What the gateway is asked for. */
export function queryOf(parameters: URLSearchParams): AssetQuery {
  const given = TEXTS.map((name) => [name, parameters.get(name)] as const).filter(([, value]) => value)
  return { ...(Object.fromEntries(given) as AssetQuery), deleted: parameters.get('deleted') === 'true' || undefined }
}

export function refsOf(parameters: URLSearchParams): Refs {
  try {
    const read: unknown = JSON.parse(parameters.get('refs') ?? '{}')
    return typeof read === 'object' && read !== null ? (read as Refs) : {}
  } catch {
    return {}
  }
}

/** The references with one more, or one less where the text is empty; `null` where none is left. */
export function withRef(refs: Refs, name: string, text: string, isNumber: boolean): string | null {
  const rest = Object.fromEntries(Object.entries(refs).filter(([each]) => each !== name))
  const value = isNumber && isWholeNumber(text) ? Number(text) : text
  const all = text === '' ? rest : { ...rest, [name]: value }
  return Object.keys(all).length > 0 ? JSON.stringify(all) : null
}

/** Partners send numbers as numbers or as texts, and these are different references: only a person knows which. */
export function isWholeNumber(text: string): boolean {
  return WHOLE_NUMBER.test(text)
}

/** A part of a map as the gateway takes it, no finer than about ten metres. */
export function boxOf(seen: Bbox): string {
  const [west, south, east, north] = rolled(seen)
  const sides = [west, Math.max(-90, south), east, Math.min(90, north)]
  return sides.map((value) => String(Number(value.toFixed(4)))).join(',')
}

/** A box in degrees with as many places as a person reads. */
export function boxText(bbox: readonly number[]): string {
  return bbox.map((value) => value.toFixed(2)).join(', ')
}
