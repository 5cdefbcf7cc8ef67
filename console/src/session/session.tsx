/** Who is signed in, and what they may do. What one may not do is not offered; the gateway refuses it in any case. */

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, Fragment, use, useCallback, useEffect, useMemo, useState, type ReactNode } from 'react'

import { content, gateway, onSignedOut } from '../api/client'
import type { components } from '../api/gateway'
import { Loading, ProblemNotice } from '../ui/notices'

export type SessionView = components['schemas']['SessionView']
export type Caller = NonNullable<SessionView['caller']>
export type Deed = Caller['deeds'][number]

interface Session {
  view: SessionView
  caller: Caller | null
  /** Whether a session was there and is not any more. */
  ended: boolean
  may(deed: Deed): boolean
  signIn(apiKey: string): Promise<void>
  signOut(): Promise<void>
  /** Whether signing out failed; then the session goes on. */
  signOutFailed: boolean
}

const Context = createContext<Session | null>(null)
const KEY = ['session']
const SIGN_OUT_MS = 10_000

export function SessionProvider({ children }: { children: ReactNode }) {
  const client = useQueryClient()
  const [ended, setEnded] = useState(false)
  const [departure, setDeparture] = useState<'none' | 'going' | 'failed'>('none')

  /** What one caller has seen is not for the next one, who may also have signed in in another window. */
  const meet = useCallback(
    (view: SessionView, isOver: boolean) => {
      const before = client.getQueryData<SessionView>(KEY)
      if (before?.caller?.name === view.caller?.name) return
      client.removeQueries({ predicate: (query) => query.queryKey[0] !== KEY[0] })
      setEnded(isOver)
      setDeparture('none')
    },
    [client],
  )
  const become = useCallback(
    (view: SessionView, isOver: boolean) => {
      meet(view, isOver)
      client.setQueryData(KEY, view)
    },
    [client, meet],
  )

  const { data, error, refetch } = useQuery({
    queryKey: KEY,
    queryFn: async ({ signal }) => {
      const view = await content(gateway.GET('/api/session', { signal }))
      meet(view, client.getQueryData(KEY) !== undefined && view.caller === null)
      return view
    },
    staleTime: Infinity,
  })

  useEffect(
    () =>
      onSignedOut(() => {
        const view = client.getQueryData<SessionView>(KEY)
        if (view?.caller) become({ ...view, caller: null }, true)
      }),
    [client, become],
  )

  const session = useMemo<Session | null>(() => {
    if (!data) return null
    return {
      view: data,
      caller: data.caller,
      ended,
      may: (deed) => data.caller?.deeds.includes(deed) ?? false,
      signIn: async (apiKey) =>
        become(await content(gateway.POST('/api/session', { body: { api_key: apiKey } })), false),
      signOut: async () => {
        // The pages go first: what they ask while the cookie goes would be refused.
        setDeparture('going')
        try {
          await client.cancelQueries() // or an answer of before would bring the session back
          await gateway.DELETE('/api/session', { signal: AbortSignal.timeout(SIGN_OUT_MS) })
          become({ ...data, caller: null }, false)
        } catch {
          setDeparture('failed')
        }
      },
      signOutFailed: departure === 'failed',
    }
  }, [client, data, ended, departure, become])

  if (error && !data) return <ProblemNotice error={error} onRetry={() => void refetch()} />
  if (!session || departure === 'going') return <Loading />
  return (
    <Context value={session}>
      <Fragment key={session.caller?.name}>{children}</Fragment>
    </Context>
  )
}

export function useSession(): Session {
  const session = use(Context)
  if (session === null) throw new Error('There is no session around this component.')
  return session
}

/** Whether the caller may do this. */
export function useMay(deed: Deed): boolean {
  return useSession().may(deed)
}
