/** The last 24 hours as bars: one for each hour, with those in which nothing ended. */

import type { Statistics } from '../../api/model'

export const HOUR_MS = 3_600_000

export const ENDS = ['completed', 'failed', 'cancelled'] as const
export type End = (typeof ENDS)[number]
export type Hour = { start: number } & Record<End, number>

/** One more than 24 hours: the first and the last have partly passed. */
const SHOWN = 25

/** Gives every hour from a day ago until now, oldest first; what the numbers do not name is zero. */
export function everyHour(counted: Statistics['hours'], now: number): Hour[] {
  const known = new Map(counted.map((hour) => [hourOf(new Date(hour.hour).getTime()), hour]))
  const last = hourOf(now)
  return Array.from({ length: SHOWN }, (_, index) => {
    const start = last - (SHOWN - 1 - index) * HOUR_MS
    const { completed = 0, failed = 0, cancelled = 0 } = known.get(start) ?? {}
    return { start, completed, failed, cancelled }
  })
}

function hourOf(time: number): number {
  return Math.floor(time / HOUR_MS) * HOUR_MS
}

export function total(hour: Hour): number {
  return hour.completed + hour.failed + hour.cancelled
}

/** Gives the hour in which most ended, or null where none did. */
export function busiest(hours: Hour[]): Hour | null {
  const most = hours.reduce((best, hour) => (total(hour) > total(best) ? hour : best))
  return total(most) > 0 ? most : null
}

/** Gives a round number at or above the highest bar, whose half is whole too. */
export function roundTop(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(highest, 1)))
  return [1, 2, 4, 6, 8, 10].map((step) => step * power).find((top) => top >= highest && top % 2 === 0) ?? 2
}

export interface Part {
  end: End
  top: number
  height: number
}

/** Gives the parts of a bar from the bottom up. One job among thousands is still seen: each part has some height. */
export function stacked(hour: Hour, highest: number, height: number, least = 2): Part[] {
  const ends = ENDS.filter((end) => hour[end] > 0)
  const wanted = ends.map((end) => Math.max(least, (hour[end] / highest) * height))
  const fit = Math.min(1, height / wanted.reduce((sum, each) => sum + each, 0))
  let top = height
  return ends.map((end, place) => {
    const tall = wanted[place]! * fit
    top -= tall
    return { end, top, height: tall }
  })
}
