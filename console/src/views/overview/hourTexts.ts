/** Hours as people read them, in their own time. */

import { overview as texts } from '../../texts/overview'
import { HOUR_MS, type Hour } from './hours'

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })

export function clock(time: number): string {
  return CLOCK.format(time)
}

/** From when until when an hour is. */
export function during(hour: Hour): string {
  return texts.throughput.during(clock(hour.start), clock(hour.start + HOUR_MS))
}

/** An hour in words. */
export function told(hour: Hour): string {
  return texts.throughput.told(during(hour), hour.completed, hour.failed, hour.cancelled)
}
