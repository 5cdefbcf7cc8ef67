/** What of the jobs is shown, as the address says it and as the gateway is asked for it. */

import { jobStatusValues, type operations } from '../../api/gateway'
import type { JobStatus } from '../../api/model'

export type JobQuery = NonNullable<operations['list_jobs_api_status_jobs_get']['parameters']['query']>

/** The names in the address; what is empty does not count. */
const FILTERS = ['q', 'status', 'workflow', 'by', 'after', 'before'] as const
export type Filters = Record<(typeof FILTERS)[number], string>

/** A change of the address that clears them all. */
export const NO_FILTERS = Object.fromEntries(FILTERS.map((name) => [name, null]))

export function filtersOf(address: URLSearchParams): Filters {
  return Object.fromEntries(FILTERS.map((name) => [name, address.get(name)?.trim() ?? ''])) as Filters
}

export function queryOf(filters: Filters): JobQuery {
  return {
    q: filters.q || undefined,
    status: statusOf(filters.status),
    workflow_id: filters.workflow || undefined,
    submitted_by: filters.by || undefined,
    created_after: timeOf(filters.after),
    created_before: timeOf(filters.before),
  }
}

/** An address may be written by hand: what is no state is not asked for. */
function statusOf(text: string): JobStatus | undefined {
  return jobStatusValues.find((status) => status === text)
}

function timeOf(text: string): string | undefined {
  const at = new Date(text)
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString()
}

/** A time of the address as an input of local time holds it: `2026-03-01T09:30`. */
export function localOf(iso: string): string {
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return ''
  const digits = (value: number, places = 2) => String(value).padStart(places, '0')
  const day = `${digits(at.getFullYear(), 4)}-${digits(at.getMonth() + 1)}-${digits(at.getDate())}`
  return `${day}T${digits(at.getHours())}:${digits(at.getMinutes())}`
}

/** The time that an input of local time holds, as the address has it. */
export function isoOf(local: string): string {
  return timeOf(local) ?? ''
}
