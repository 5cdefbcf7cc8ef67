/** How what is shown follows what happens: told by the stream where there is one, else asked for every few seconds. */

import { useQueryClient } from '@tanstack/react-query'
import { createContext, use, useCallback, useEffect, useMemo, useState, type ReactNode } from 'react'

import { eventTypeValues } from '../api/gateway'
import type { Event } from '../api/model'
import { Problem } from '../api/problem'
import { useSession } from '../session/session'
import { LIVE_MS, pauseOf, POLL_MS } from './every'
import { EventStream } from './stream'
import { Touched } from './touched'

const PROBE_MS = 2000
/** The server listens for events a moment after it has opened the stream. */
const LISTENS_AFTER_MS = 1000

export type LiveState = 'connecting' | 'live' | 'polling' | 'lost'

interface Live {
  state: LiveState
  /** How often to ask; rarely while the stream tells of changes. */
  every: number
  /** Another one whenever events may have been missed, so that everything has to be read anew. */
  generation: number
  subscribe(listener: (event: Event) => void): () => void
}

/** Where there is no stream, nothing is heard. */
const subscribeToNothing = () => () => undefined
const Context = createContext<Live>({
  state: 'polling',
  every: POLL_MS,
  generation: 0,
  subscribe: subscribeToNothing,
})

export function LiveProvider({ children }: { children: ReactNode }) {
  const { view, may } = useSession()
  const streams = view.live && may('operate')
  return streams ? <Streaming>{children}</Streaming> : <Polling>{children}</Polling>
}

function Streaming({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const [state, setState] = useState<LiveState>('connecting')
  const [listeners] = useState(() => new Set<(event: Event) => void>())
  const [generation, readAnew] = useReadAnew()

  useEffect(() => {
    const touched = new Touched(client)
    let timer: ReturnType<typeof setTimeout> | undefined
    let wasLost = false
    const stream = new EventStream(
      eventTypeValues,
      (event) => {
        touched.add(event)
        listeners.forEach((listener) => listener(event))
      },
      (next) => {
        clearTimeout(timer)
        if (next === 'live') {
          if (wasLost) readAnew()
          // What happened since the pages were read, and before the server listened, is in no event.
          timer = setTimeout(readAnew, LISTENS_AFTER_MS)
        }
        wasLost = next === 'lost'
        setState(next)
      },
    )
    const close = () => {
      clearTimeout(timer)
      stream.close()
    }
    // A page that nobody sees holds no connection: a browser has few for one server.
    const follow = () => {
      if (document.hidden) close()
      else stream.open()
    }
    follow()
    document.addEventListener('visibilitychange', follow)
    return () => {
      document.removeEventListener('visibilitychange', follow)
      close()
    }
  }, [client, listeners, readAnew])

  const subscribe = useCallback(
    (listener: (event: Event) => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    [listeners],
  )
  const live = useMemo<Live>(
    () => ({ state, every: state === 'live' ? LIVE_MS : POLL_MS, generation, subscribe }),
    [state, generation, subscribe],
  )
  return <Context value={live}>{children}</Context>
}

function Polling({ children }: { children: ReactNode }) {
  const [generation, readAnew] = useReadAnew()
  const reachable = useReachable(readAnew)
  const live = useMemo<Live>(
    () => ({
      state: reachable ? 'polling' : 'lost',
      every: POLL_MS,
      generation,
      subscribe: subscribeToNothing,
    }),
    [reachable, generation],
  )
  return <Context value={live}>{children}</Context>
}

/** Gives what reads everything anew, and how often that was done; also done when the page is shown again. */
function useReadAnew(): [number, () => void] {
  const client = useQueryClient()
  const [generation, setGeneration] = useState(0)
  const readAnew = useCallback(() => {
    void client.invalidateQueries()
    setGeneration((before) => before + 1)
  }, [client])

  useEffect(() => {
    const show = () => {
      if (!document.hidden) readAnew()
    }
    document.addEventListener('visibilitychange', show)
    return () => document.removeEventListener('visibilitychange', show)
  }, [readAnew])

  return [generation, readAnew]
}

/** Whether the gateway answers, as the last question to it showed; while it does not, it is asked again and again. */
function useReachable(onReached: () => void): boolean {
  const client = useQueryClient()
  const [reachable, setReachable] = useState(true)

  useEffect(
    () =>
      client.getQueryCache().subscribe((change) => {
        if (change.type !== 'updated') return
        const { action } = change
        if (action.type === 'success' && !action.manual) setReachable(true)
        if (action.type === 'error' && isUnreachable(action.error)) setReachable(false)
      }),
    [client],
  )

  useEffect(() => {
    if (reachable) return
    const probe = async () => {
      const answer = await fetch('/api/livez').catch(() => null)
      if (!answer?.ok) return
      setReachable(true)
      onReached()
    }
    const timer = setInterval(() => void probe(), PROBE_MS)
    return () => clearInterval(timer)
  }, [reachable, onReached])

  return reachable
}

function isUnreachable(error: unknown): boolean {
  return error instanceof Problem && error.isUnreachable
}

export function useLive(): Live {
  return use(Context)
}

/** For `refetchInterval`: when a query asks again by itself. */
export function useEvery() {
  const { every } = useLive()
  return useCallback((query: Parameters<typeof pauseOf>[0]) => pauseOf(query, every), [every])
}
