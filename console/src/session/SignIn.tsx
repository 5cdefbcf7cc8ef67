import { useState, type FormEvent } from 'react'
import { useLocation, useSearchParams } from 'react-router'

import { shell } from '../texts/shell'
import { Button } from '../ui/Button'
import { Field } from '../ui/Field'
import { Notice, ProblemNotice } from '../ui/notices'
import { useSession } from './session'

/** The first page of whoever is not signed in; afterwards, the page that was asked for is shown. */
export function SignIn() {
  const session = useSession()
  const [parameters] = useSearchParams()
  const failed = parameters.get('sign_in')
  const { oidc } = session.view.sign_in
  return (
    <main className="sign-in">
      <h1>
        <img src="/static/icon.svg" alt="" width="32" height="32" /> {shell.name}
      </h1>
      {session.ended && <Notice kind="warning">{shell.sessionEnded}</Notice>}
      {failed && <Notice kind="error">{shell.signInFailed[failed] ?? shell.signInFailed.refused}</Notice>}
      <KeyForm onKey={session.signIn} />
      {oidc && (
        <>
          <p className="sign-in-or">{shell.or}</p>
          <OrganizationLink label={oidc} />
        </>
      )}
    </main>
  )
}

function KeyForm({ onKey }: { onKey: (key: string) => Promise<void> }) {
  const [key, setKey] = useState('')
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)

  async function submit(event: FormEvent) {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      await onKey(key.trim())
    } catch (problem) {
      setError(problem)
      setBusy(false)
    }
  }

  return (
    <form onSubmit={(event) => void submit(event)}>
      <Field label={shell.apiKey} hint={shell.apiKeyHint}>
        {(props) => (
          <input
            {...props}
            type="password"
            name="api_key"
            autoComplete="current-password"
            required
            autoFocus
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        )}
      </Field>
      {error !== null && <ProblemNotice error={error} />}
      <Button kind="primary" type="submit" busy={busy}>
        {shell.signIn}
      </Button>
    </form>
  )
}

function OrganizationLink({ label }: { label: string }) {
  const { pathname, search } = useLocation()
  const to = new URLSearchParams({ to: search.includes('sign_in=') ? pathname : pathname + search })
  return (
    <a className="button" href={`/api/session/oidc?${to}`}>
      {label}
    </a>
  )
}
