/** A clock that stands still until a test lets time pass. */

import type { TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'

/** What happens in time happens only while this lets it pass. */
export type Pass = (milliseconds: number) => Promise<void>

const SHORTEST_STEP_MS = 10
const MOST_STEPS = 200

export function stopTheClock(context: TestContext): Pass {
  const { timers } = context.mock
  timers.enable({ apis: ['setTimeout', 'Date'] })
  return async (milliseconds) => {
    const step = Math.max(SHORTEST_STEP_MS, milliseconds / MOST_STEPS)
    for (let left = milliseconds; left > 0; left -= step) {
      timers.tick(Math.min(left, step))
      await settled()
    }
    await settled()
  }
}

/** Waits until all that waits for nothing but promises is done. */
export async function settled(): Promise<void> {
  await setImmediate()
}
