import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { BrowserRouter } from 'react-router'

import { Problem } from '../api/problem'
import { LiveProvider } from '../live/live'
import { SessionProvider, useSession } from '../session/session'
import { SignIn } from '../session/SignIn'
import { SignOut } from '../session/SignOut'
import { shell } from '../texts/shell'
import { Above } from '../ui/Above'
import { useAddress } from '../ui/address'
import { Notice } from '../ui/notices'
import { Layout } from './Layout'
import { Views } from './views'

/** What was refused is refused again; what was not reached may be reached now. */
function isWorthRepeating(failures: number, error: Error): boolean {
  const status = error instanceof Problem ? error.status : 500
  return failures < 2 && (status === 0 || status === 502 || status === 503)
}

/** When the page is shown again, `live` reads everything anew; the queries need not do it as well. */
const QUERIES = { retry: isWorthRepeating, staleTime: 1000, refetchOnWindowFocus: false }

export function App() {
  const [client] = useState(() => new QueryClient({ defaultOptions: { queries: QUERIES } }))
  return (
    <QueryClientProvider client={client}>
      {/* Many controls have their state in the address: a transition would show them unchanged for a moment. */}
      <BrowserRouter useTransitions={false}>
        <SessionProvider>
          <Above>
            <SignedIn />
          </Above>
        </SessionProvider>
      </BrowserRouter>
    </QueryClientProvider>
  )
}

function SignedIn() {
  const { caller, may } = useSession()
  useForgottenFailure(caller !== null)
  if (caller === null) return <SignIn />
  if (!may('inspect')) return <NotForPartners name={caller.name} />
  return (
    <LiveProvider>
      <Layout>
        <Views />
      </Layout>
    </LiveProvider>
  )
}

/** Why signing in at the issuer failed stands in the address; whoever is signed in needs to know it no more. */
function useForgottenFailure(isSignedIn: boolean) {
  const [parameters, change] = useAddress()
  const isTold = isSignedIn && parameters.has('sign_in')
  useEffect(() => {
    if (isTold) change({ sign_in: null })
  }, [isTold, change])
}

function NotForPartners({ name }: { name: string }) {
  return (
    <main className="sign-in">
      <h1>{shell.name}</h1>
      <Notice kind="warning">
        <strong>{shell.forStaff}</strong> {shell.forStaffHint(name)}
      </Notice>
      <SignOut />
    </main>
  )
}
