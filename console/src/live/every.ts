/** How often queries ask by themselves. */

import { Problem } from '../api/problem'

export const POLL_MS = 5000
/**
 * While the stream tells of changes this is a safety net only. It is needed: what stands still (a stuck version, the
 * age of what waits, a worker that has fallen silent) makes no events, and an answer may be older than its event.
 */
export const LIVE_MS = 20_000

/** Of a query, what matters here. */
interface Asked {
  state: { status: string; error: Error | null }
}

/** When a query asks again: as often as all do, but soon where it failed by no fault of its own. */
export function pauseOf({ state }: Asked, every: number): number {
  return state.status === 'error' ? (pauseAfter(state.error) ?? every) : every
}

/** For what never changes: it asks again only until it has its answer. */
export function untilAnswered({ state }: Asked): number | false {
  return state.status === 'error' && (pauseAfter(state.error) ?? false)
}

/** What was refused is refused again: null. */
function pauseAfter(error: Error | null): number | null {
  if (!(error instanceof Problem)) return POLL_MS
  if (error.status === 429) return Math.max(POLL_MS, 1000 * (error.retryAfterSeconds ?? 0))
  return error.status === 0 || error.status >= 500 ? POLL_MS : null
}
