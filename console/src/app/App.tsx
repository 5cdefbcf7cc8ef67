import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { useState } from 'react'
import { BrowserRouter } from 'react-router'

import { Problem } from '../api/problem'
import { LiveProvider } from '../live/live'
import { SessionProvider, useSession } from '../session/session'
import { SignIn } from '../session/SignIn'
import { shell } from '../texts/shell'
import { Button } from '../ui/Button'
import { Notice } from '../ui/notices'
import { Layout } from './Layout'
import { Views } from './views'

/** What was refused is refused again; what was not reached may be reached now. */
function isWorthRepeating(failures: number, error: Error): boolean {
  const status = error instanceof Problem ? error.status : 500
  return failures < 2 && (status === 0 || status === 502 || status === 503)
}

export function App() {
  const [client] = useState(
    () => new QueryClient({ defaultOptions: { queries: { retry: isWorthRepeating, staleTime: 1000 } } }),
  )
  return (
    <QueryClientProvider client={client}>
      {/* Many controls have their state in the address: a transition would show them unchanged for a moment. */}
      <BrowserRouter useTransitions={false}>
        <SessionProvider>
          <SignedIn />
        </SessionProvider>
      </BrowserRouter>
    </QueryClientProvider>
  )
}

function SignedIn() {
  const { caller, may } = useSession()
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

function NotForPartners({ name }: { name: string }) {
  const { signOut } = useSession()
  return (
    <main className="sign-in">
      <h1>{shell.name}</h1>
      <Notice kind="warning">
        <strong>{shell.forStaff}</strong> {shell.forStaffHint(name)}
      </Notice>
      <Button onClick={() => void signOut()}>{shell.signOut}</Button>
    </main>
  )
}
