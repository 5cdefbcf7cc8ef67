/** Numbers, times and lengths of time as people read them. */

import { shared } from '../texts/shared'

const INTEGER = new Intl.NumberFormat('en')
const EXACTLY: Intl.DateTimeFormatOptions = {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
}
const DATE_TIME = new Intl.DateTimeFormat('en-GB', EXACTLY)
const DATE_TIME_UTC = new Intl.DateTimeFormat('en-GB', { ...EXACTLY, timeZone: 'UTC' })
const STEPS: [number, string][] = [
  [86400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
]

export function count(value: number): string {
  return INTEGER.format(value)
}

/** A time as it is where the person is. */
export function dateTime(at: string | Date): string {
  return DATE_TIME.format(new Date(at))
}

/** A time that data tell of: the same for everyone. */
export function dateTimeUtc(at: string | Date): string {
  return DATE_TIME_UTC.format(new Date(at))
}

/** A length of time by its two largest parts: `2 h 5 min`, `340 ms`. */
export function duration(seconds: number): string {
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const rounded = Math.round(seconds)
  const place = STEPS.findIndex(([size]) => rounded >= size)
  const [size, unit] = STEPS[place] ?? [1, 's']
  const next = STEPS[place + 1]
  const rest = next ? Math.floor((rounded % size) / next[0]) : 0
  const whole = `${Math.floor(rounded / size)} ${unit}`
  return next && rest > 0 ? `${whole} ${rest} ${next[1]}` : whole
}

/** How long ago, or in how long, by its largest part. */
export function relative(at: string | Date, now: number = Date.now()): string {
  const seconds = (now - new Date(at).getTime()) / 1000
  if (Math.abs(seconds) < 5) return shared.now
  const [size, unit] = STEPS.find(([each]) => Math.abs(seconds) >= each) ?? [1, 's']
  const text = `${Math.floor(Math.abs(seconds) / size)} ${unit}`
  return seconds > 0 ? shared.ago(text) : shared.ahead(text)
}

export function between(start: string | null | undefined, end: string | null | undefined): number | null {
  if (!start) return null
  return ((end ? new Date(end).getTime() : Date.now()) - new Date(start).getTime()) / 1000
}

export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const enough = units.findIndex((_, power) => value < 999.95 * 1000 ** power) // more would be rounded to 1000
  const power = enough < 0 ? units.length - 1 : enough
  return `${(value / 1000 ** power).toFixed(power > 0 ? 1 : 0)} ${units[power]}`
}

/** The beginning of a long id, enough to tell it from others on a page: that of a job begins with 12 digits of time. */
export function shortId(id: string): string {
  return id.slice(0, 16)
}
