import { useEffect, useState } from 'react'

import { shared } from '../texts/shared'
import { between, duration } from '../ui/format'
import './parts.css'

/** The time now, every second while `isRunning`. */
export function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(timer)
  }, [isRunning])
  return now
}

interface Props {
  start: string | null | undefined
  /** Without an end it goes on. */
  end: string | null | undefined
}

/** How long something took, or takes already. */
export function Elapsed({ start, end }: Props) {
  useNow(!!start && !end)
  const seconds = between(start, end)
  return <span className="elapsed">{seconds === null ? shared.none : duration(Math.max(0, seconds))}</span>
}
