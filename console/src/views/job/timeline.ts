/** The timeline of a job: for each node the spans of time in which it waited and ran, and the ticks of the axis. */

import type { Event, NodeTimes, Timeline } from '../../api/model'
import { triesOf, tryOf, type Try } from './tries'

export type SpanKind = 'held' | 'backoff' | 'queued' | 'run'

export interface Span {
  kind: SpanKind
  /** In ms since 1970; `to` is null while it goes on. */
  from: number
  to: number | null
  outcome: Try['outcome']
}

export interface Row {
  times: NodeTimes
  tries: Try[]
  spans: Span[]
}

/** Gives a row for each node that has begun, in graph order. */
export function rowsOf({ items }: Timeline, events: readonly Event[]): Row[] {
  const ids = new Set(items.map((times) => times.node_id))
  const told = triesOf(events, (id) => ids.has(id))
  return items
    .map((times) => rowOf(times, told.get(times.node_id) ?? []))
    .filter(({ spans }) => spans.length > 0)
}

function rowOf(times: NodeTimes, told: Try[]): Row {
  const tries = completed(told, tryOf(times))
  const spans = tries.flatMap((each, index) => spansOf(index === tries.length - 1 ? withChildren(each, times) : each))
  return { times, tries, spans }
}

/** The row of a node tells of its last try what the log does not tell, or not yet. */
function completed(told: Try[], last: Try): Try[] {
  const open = told.at(-1)
  if (!open) return [last]
  const [began, ended] = [ms(open.readyAt ?? open.dispatchedAt ?? open.startedAt), ms(last.endedAt)]
  if (open.endedAt !== null || ended === null || (began !== null && ended < began)) return told
  return [...told.slice(0, -1), { ...open, endedAt: last.endedAt, outcome: last.outcome }]
}

/** A fan-out was dispatched when it began, and runs from when its first child was taken. */
function withChildren(each: Try, { children }: NodeTimes): Try {
  if (!children) return each
  return { ...each, dispatchedAt: each.startedAt, startedAt: children.first_started_at ?? children.first_dispatched_at }
}

/** A try waits to be sent, waits in its queue, and runs. */
function spansOf(each: Try): Span[] {
  const [ready, dispatched, started, ended] = [each.readyAt, each.dispatchedAt, each.startedAt, each.endedAt].map(ms)
  // Of a quick task nobody heard that it ran; a node that no worker takes has nothing but its end.
  const begun = started ?? (ended === null ? null : (dispatched ?? (ready === null ? ended : null)))
  const span = (kind: SpanKind, from: number | null | undefined, to: number | null | undefined): Span[] =>
    typeof from === 'number' ? [{ kind, from, to: to ?? null, outcome: each.outcome }] : []
  return [
    ...span(each.isRetry ? 'backoff' : 'held', ready, dispatched ?? ended),
    ...span('queued', dispatched, begun ?? ended),
    ...span('run', begun, ended),
  ].filter(({ kind, from, to }) => kind === 'run' || from !== to)
}

function ms(at: string | null | undefined): number | null {
  return at ? new Date(at).getTime() : null
}

export interface Range {
  from: number
  to: number
}

/** From when the job was made until its end; one that goes on, until now. */
export function rangeOf({ created_at, ended_at }: Timeline, rows: readonly Row[], now: number): Range {
  const from = new Date(created_at).getTime()
  const known = rows.flatMap(({ spans }) => spans.map((each) => each.to ?? each.from))
  return { from, to: known.reduce((last, each) => Math.max(last, each), Math.max(ms(ended_at) ?? now, from + 1)) }
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 14, 30].map((days) => days * DAY),
]

/** Gives the ticks of the axis, in ms after its beginning, at most so many. */
export function ticksOf({ from, to }: Range, most: number): number[] {
  const length = to - from
  const step = STEPS.find((each) => length / each <= most) ?? length
  return Array.from({ length: Math.floor(length / step) + 1 }, (_, index) => index * step)
}
