/** Small parts: a card, a badge of a state, a time, a bar, and values as they are. */

import { Fragment, useEffect, useMemo, useState, type MouseEvent, type ReactNode } from 'react'

import { shared } from '../texts/shared'
import { Button } from './Button'
import { copy } from './copying'
import { bytes, dateTime, relative } from './format'

interface CardProps {
  title: ReactNode
  actions?: ReactNode
  /** Without space around its content, as for tables and maps. */
  flush?: boolean
  className?: string
  children: ReactNode
}

export function Card({ title, actions, flush = false, className = '', children }: CardProps) {
  return (
    <section className={`card ${className}`}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      <div className={flush ? 'card-body flush' : 'card-body'}>{children}</div>
    </section>
  )
}

export type Tone = 'good' | 'busy' | 'bad' | 'warn' | 'idle'

const TONES: Record<string, Tone> = {
  accepted: 'busy',
  active: 'good',
  alive: 'good',
  approved: 'good',
  completed: 'good',
  dead: 'bad',
  dispatched: 'busy',
  failed: 'bad',
  gone: 'bad',
  leased: 'busy',
  ouo: 'warn',
  pending_review: 'warn',
  processing: 'busy',
  public: 'good',
  queued: 'idle',
  ready: 'warn',
  rejected: 'bad',
  revoked: 'bad',
  running: 'busy',
  stale: 'warn',
}

/** The tone of a state; one that is not named is idle. */
export function toneOf(state: string): Tone {
  return TONES[state] ?? 'idle'
}

export function StateBadge({ state }: { state: string }) {
  return <span className={`badge tone-${toneOf(state)}`}>{shared.states[state] ?? state}</span>
}

/** A time as people speak of it, and exactly where the mouse rests. */
export function Time({ at }: { at: string | null | undefined }) {
  const [, again] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => again((count) => count + 1), 15_000)
    return () => clearInterval(timer)
  }, [])
  if (!at) return <>{shared.none}</>
  return (
    <time dateTime={at} title={dateTime(at)}>
      {relative(at)}
    </time>
  )
}

interface ProgressProps {
  label: string
  total: number
  done: number
  failed?: number
  running?: number
}

export function Progress({ label, total, done, failed = 0, running = 0 }: ProgressProps) {
  const part = (value: number) => ({ width: `${total > 0 ? (100 * value) / total : 0}%` })
  return (
    <div
      className="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={done + failed}
    >
      <div className="done" style={part(done)} />
      <div className="failed" style={part(failed)} />
      <div className="running" style={part(running)} />
    </div>
  )
}

interface CopyProps {
  text: string
  label?: string
  /** What is copied, for those who do not see what the button stands beside. */
  of?: string
}

export function CopyButton({ text, label = shared.copy, of }: CopyProps) {
  const [told, setTold] = useState<string | null>(null)
  useEffect(() => {
    if (told === null) return
    const timer = setTimeout(() => setTold(null), 2000)
    return () => clearTimeout(timer)
  }, [told])

  async function press({ currentTarget }: MouseEvent<HTMLElement>) {
    setTold((await copy(text, currentTarget)) ? shared.copied : shared.notCopied)
  }

  return (
    <Button
      kind="quiet"
      aria-live="polite"
      aria-label={of && told === null ? `${label} ${of}` : undefined}
      onClick={(event) => void press(event)}
    >
      {told ?? label}
    </Button>
  )
}

export function KeyValues({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl className="key-values">
      {items.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value === null || value === undefined || value === '' ? shared.none : value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}

/** More of a text makes a browser slow. */
const MOST_CHARACTERS = 100_000

export function Json({ value, label }: { value: unknown; label: string }) {
  const [isWhole, setWhole] = useState(false)
  const text = useMemo(() => JSON.stringify(value, null, 2) ?? '', [value])
  const isCut = text.length > MOST_CHARACTERS && !isWhole
  return (
    <>
      <pre className="json" tabIndex={0} role="region" aria-label={label}>
        {isCut ? text.slice(0, MOST_CHARACTERS) : text}
      </pre>
      {isCut && (
        <p className="soft">
          {shared.cut(bytes(MOST_CHARACTERS), bytes(text.length))}{' '}
          <Button onClick={() => setWhole(true)}>{shared.showAll}</Button>
        </p>
      )}
    </>
  )
}
