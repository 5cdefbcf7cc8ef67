import { createContext, use, useEffect, useMemo, useSyncExternalStore, type ReactNode } from 'react'

import { useLive } from '../../live/live'
import { EventLog, type LogState } from './eventLog'
import { readEvents } from './queries'

const Context = createContext<EventLog | null>(null)

interface Props {
  jobId: string
  /** Whether nothing more is to come, as far as is known. */
  isOver: boolean
  children: ReactNode
}

/** Gives what is within it the events of the job, as they were and as they come. */
export function JobEvents({ jobId, isOver, children }: Props) {
  const log = useMemo(() => new EventLog((cursor) => readEvents(jobId, cursor)), [jobId])
  useHearing(log, jobId)
  useCatchingUp(log, isOver)
  return <Context value={log}>{children}</Context>
}

function useHearing(log: EventLog, jobId: string) {
  const { subscribe } = useLive()
  useEffect(
    () =>
      subscribe((event) => {
        if (event.job_id === jobId) log.hear(event)
      }),
    [log, jobId, subscribe],
  )
  useEffect(() => () => log.close(), [log])
}

/** Finds what the stream did not tell: while it was cut or the page was hidden, or because there is none. */
function useCatchingUp(log: EventLog, isOver: boolean) {
  const { every, generation } = useLive()

  useEffect(() => log.catchUp(), [log, generation, isOver])

  useEffect(() => {
    const timer = setInterval(() => {
      const { isWhole, error } = log.getState()
      const isComplete = isOver && isWhole && error === null
      if (!isComplete && !document.hidden) log.catchUp()
    }, every)
    return () => clearInterval(timer)
  }, [log, every, isOver])
}

export function useEventLog(): LogState & { readMore(): void } {
  const log = use(Context)
  if (log === null) throw new Error('There are no events around this component.')
  const state = useSyncExternalStore(log.subscribe, log.getState)
  return { ...state, readMore: () => log.readMore() }
}
