import { useEffect, useEffectEvent, useId, useRef, useState, type RefObject } from 'react'

import type { NodeTimes } from '../../api/model'
import { TypeIcon } from '../../graph/icons'
import { job as texts } from '../../texts/job'
import { shared } from '../../texts/shared'
import { count, duration } from '../../ui/format'
import { toneOf } from '../../ui/parts'
import { clock } from './clock'
import { ticksOf, type Range, type Row, type Span, type SpanKind } from './timeline'
import type { Try } from './tries'

type ChildrenTimes = NonNullable<NodeTimes['children']>

const TICK_WIDTH = 110
const SHOWN_TRIES = 6

interface Props {
  rows: Row[]
  range: Range
  /** Null once the job has ended. */
  now: number | null
  onSelect: (nodeId: string) => void
}

export function Chart({ rows, range, now, onSelect }: Props) {
  const place = (at: number) => `${(100 * (at - range.from)) / (range.to - range.from)}%`
  return (
    <div className="card job-chart">
      <Legend />
      <div className="job-chart-rows">
        <Axis range={range} place={place} />
        <ol aria-label={texts.timeline.label}>
          {rows.map((row) => (
            <Bar key={row.times.node_id} row={row} range={range} place={place} onSelect={onSelect} />
          ))}
        </ol>
        {now !== null && (
          <div className="job-chart-plane" aria-hidden="true">
            <div className="job-chart-now" style={{ left: place(Math.min(now, range.to)) }} />
          </div>
        )}
      </div>
      <p className="soft job-chart-hint">{texts.timeline.hint}</p>
    </div>
  )
}

function Axis({ range, place }: { range: Range; place: (at: number) => string }) {
  const plane = useRef<HTMLDivElement>(null)
  const most = Math.max(1, Math.floor(useWidth(plane) / TICK_WIDTH))
  return (
    <div className="job-chart-plane" ref={plane} aria-hidden="true">
      {ticksOf(range, most).map((tick) => (
        <div key={tick} className="job-chart-tick" style={{ left: place(range.from + tick) }}>
          <span>{tick === 0 ? clock(range.from) : `+${duration(tick / 1000)}`}</span>
        </div>
      ))}
    </div>
  )
}

function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0)
  useEffect(() => {
    if (!element.current) return
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0))
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [element])
  return width
}

interface BarProps {
  row: Row
  range: Range
  place: (at: number) => string
  onSelect: (nodeId: string) => void
}

function Bar({ row, range, place, onSelect }: BarProps) {
  const [isShown, setShown] = useState(false)
  const id = useId()
  const { times, spans } = row
  return (
    <li>
      <button
        type="button"
        className={`job-bar tone-${toneOf(times.status)}`}
        data-node={times.node_id}
        aria-describedby={isShown ? id : undefined}
        onClick={() => onSelect(times.node_id)}
        onMouseEnter={() => setShown(true)}
        onMouseLeave={() => setShown(false)}
        onFocus={() => setShown(true)}
        onBlur={() => setShown(false)}
      >
        <span className="job-bar-name">
          <TypeIcon type={times.node_type} />
          <span className="truncate">{times.node_id}</span>
          <span className="visually-hidden">{shared.states[times.status]}</span>
        </span>
        <span className="job-bar-plane">
          {spans.map((span, index) => (
            <Piece key={index} span={span} end={span.to ?? range.to} place={place} />
          ))}
        </span>
      </button>
      {isShown && (
        <Exactly
          id={id}
          row={row}
          isLate={spans[0]!.from > (range.from + range.to) / 2}
          onClose={() => setShown(false)}
        />
      )}
    </li>
  )
}

function Piece({ span, end, place }: { span: Span; end: number; place: (at: number) => string }) {
  const width = `calc(${place(end)} - ${place(span.from)})`
  return <span className={`job-piece ${span.kind} ${toneOfSpan(span)}`} style={{ left: place(span.from), width }} />
}

function toneOfSpan({ outcome }: Span): string {
  return `tone-${toneOf(outcome ?? 'running')}`
}

interface ExactlyProps {
  id: string
  row: Row
  isLate: boolean
  onClose: () => void
}

/** The exact times of a node, beside its bar. */
function Exactly({ id, row, isLate, onClose }: ExactlyProps) {
  useEscape(onClose)
  const { times, tries } = row
  const shown = tries.slice(-SHOWN_TRIES)
  return (
    <div className={`job-exactly ${isLate ? 'late' : ''}`} role="tooltip" id={id}>
      <strong>{times.node_id}</strong> <span className="soft">{shared.states[times.status]}</span>
      {times.children && <p>{childrenOf(times.children)}</p>}
      {tries.length > shown.length && <p className="soft">{texts.timeline.tries(tries.length)}</p>}
      {shown.map((each, index) => (
        <p key={index}>
          {tries.length > 1 && <strong>{texts.timeline.try(tries.length - shown.length + index + 1)} </strong>}
          {timesOf(each).join(' · ')}
          {each.error && <span className="job-exactly-error"> {each.error}</span>}
        </p>
      ))}
    </div>
  )
}

/** Hears the key wherever the focus is: what the mouse points at need not have it. */
function useEscape(onEscape: () => void) {
  const latest = useEffectEvent(onEscape)
  useEffect(() => {
    const hear = (event: KeyboardEvent) => event.key === 'Escape' && latest()
    document.addEventListener('keydown', hear)
    return () => document.removeEventListener('keydown', hear)
  }, [])
}

function childrenOf({ count: all, first_started_at: first, last_ended_at: last }: ChildrenTimes): string {
  const { children, firstChild, lastChild } = texts.timeline
  return [children(count(all)), first && firstChild(clock(first)), last && lastChild(clock(last))]
    .filter(Boolean)
    .join(', ')
}

function timesOf(each: Try): string[] {
  const { columns } = texts.timeline
  const told: [string, string | null][] = [
    [columns.ready, each.readyAt],
    [columns.dispatched, each.dispatchedAt],
    [columns.started, each.startedAt],
    [each.outcome ? (shared.states[each.outcome] ?? columns.ended) : columns.ended, each.endedAt],
  ]
  return told.flatMap(([name, at]) => (at ? [`${name} ${clock(at)}`] : []))
}

const KINDS: [SpanKind, string, string][] = [
  ['backoff', 'idle', texts.timeline.kinds.backoff],
  ['queued', 'idle', texts.timeline.kinds.queued],
  ['run', 'busy', texts.timeline.outcomes.running],
  ['run', 'good', texts.timeline.outcomes.completed],
  ['run', 'bad', texts.timeline.outcomes.failed],
]

function Legend() {
  return (
    <ul className="job-legend" aria-label={texts.timeline.legend}>
      {KINDS.map(([kind, tone, text]) => (
        <li key={text}>
          <span className={`job-piece ${kind} tone-${tone}`} aria-hidden="true" /> {text}
        </li>
      ))}
    </ul>
  )
}
