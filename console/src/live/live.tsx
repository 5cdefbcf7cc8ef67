/** How what is shown follows what happens: told by the stream where there is one, else asked for every few seconds. */

import { useQueryClient } from '@tanstack/react-query'
import { createContext, use, useEffect, useMemo, useState, type ReactNode } from 'react'

import { eventTypeValues } from '../api/gateway'
import type { Event } from '../api/model'
import { useSession } from '../session/session'
import { EventStream } from './stream'
import { Touched } from './touched'

const POLL_MS = 5000
const PROBE_MS = 2000

export type LiveState = 'connecting' | 'live' | 'polling' | 'lost'

interface Live {
  state: LiveState
  /** For `refetchInterval`: null where the stream tells of changes. */
  every: number | false
  subscribe(listener: (event: Event) => void): () => void
}

const Context = createContext<Live>({ state: 'polling', every: POLL_MS, subscribe: () => () => undefined })

export function LiveProvider({ children }: { children: ReactNode }) {
  const { view, may } = useSession()
  const streams = view.live && may('operate')
  return streams ? <Streaming>{children}</Streaming> : <Polling>{children}</Polling>
}

function Streaming({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const [state, setState] = useState<LiveState>('connecting')
  const [listeners] = useState(() => new Set<(event: Event) => void>())

  useEffect(() => {
    const touched = new Touched(client)
    let wasLost = false
    const stream = new EventStream(
      eventTypeValues,
      (event) => {
        touched.add(event)
        listeners.forEach((listener) => listener(event))
      },
      (next) => {
        if (next === 'live' && wasLost) void client.invalidateQueries()
        wasLost = next === 'lost'
        setState(next)
      },
    )
    // A page that nobody sees holds no connection: a browser has few for one server.
    const show = () => {
      if (document.hidden) {
        stream.close()
      } else {
        stream.open()
        void client.invalidateQueries()
      }
    }
    stream.open()
    document.addEventListener('visibilitychange', show)
    return () => {
      document.removeEventListener('visibilitychange', show)
      stream.close()
    }
  }, [client, listeners])

  const live = useMemo<Live>(
    () => ({
      state,
      every: state === 'live' ? false : POLL_MS,
      subscribe: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }),
    [state, listeners],
  )
  return <Context value={live}>{children}</Context>
}

function Polling({ children }: { children: ReactNode }) {
  const reachable = useReachable()
  const live = useMemo<Live>(
    () => ({ state: reachable ? 'polling' : 'lost', every: POLL_MS, subscribe: () => () => undefined }),
    [reachable],
  )
  return <Context value={live}>{children}</Context>
}

/** Whether the gateway answers, as the last question to it showed; while it does not, it is asked again and again. */
function useReachable(): boolean {
  const client = useQueryClient()
  const [reachable, setReachable] = useState(true)

  useEffect(
    () =>
      client.getQueryCache().subscribe(({ query }) => {
        const { status, error } = query.state
        if (status === 'error' && isUnreachable(error)) setReachable(false)
      }),
    [client],
  )

  useEffect(() => {
    if (reachable) return
    const timer = setInterval(() => {
      void fetch('/api/livez')
        .then(() => {
          setReachable(true)
          return client.invalidateQueries()
        })
        .catch(() => undefined)
    }, PROBE_MS)
    return () => clearInterval(timer)
  }, [reachable, client])

  return reachable
}

function isUnreachable(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'isUnreachable' in error && error.isUnreachable === true
}

export function useLive(): Live {
  return use(Context)
}

/** How often a query asks by itself: not at all while the stream tells of changes. */
export function useEvery(): number | false {
  return useLive().every
}
