import { createContext, use, useEffect, useMemo, useSyncExternalStore, type ReactNode } from 'react'

import { content, gateway } from '../../api/client'
import { useLive } from '../../live/live'
import { EventLog, type LogState } from './eventLog'

const PAGE = 500
const Context = createContext<EventLog | null>(null)

/** Gives what is within it the events of the job, as they were and as they come. */
export function JobEvents({ jobId, children }: { jobId: string; children: ReactNode }) {
  const log = useMemo(() => new EventLog((cursor) => readPage(jobId, cursor)), [jobId])
  const { state, every, subscribe } = useLive()

  useEffect(() => {
    const stop = subscribe((event) => {
      if (event.job_id === jobId) log.hear(event)
    })
    return () => {
      stop()
      log.close()
    }
  }, [log, jobId, subscribe])

  useEffect(() => {
    if (state === 'live') log.catchUp()
    if (every === false) return
    const timer = setInterval(() => log.catchUp(), every)
    return () => clearInterval(timer)
  }, [log, state, every])

  return <Context value={log}>{children}</Context>
}

async function readPage(jobId: string, cursor: string | null) {
  const params = { path: { job_id: jobId }, query: { limit: PAGE, cursor } }
  const { items, next } = await content(gateway.GET('/api/status/job/{job_id}/events', { params }))
  return { items, next: next ?? null }
}

export function useEventLog(): LogState & { readMore(): void } {
  const log = use(Context)
  if (log === null) throw new Error('There are no events around this component.')
  const state = useSyncExternalStore(log.subscribe, log.getState)
  return { ...state, readMore: () => log.readMore() }
}
