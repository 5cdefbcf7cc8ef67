import { useState } from 'react'

import { shell } from '../texts/shell'
import { Button } from '../ui/Button'
import { Notice } from '../ui/notices'
import { useSession } from './session'

/** Signs out. Where that fails the session goes on, which has to be said. */
export function SignOut({ kind }: { kind?: 'quiet' }) {
  const { signOut } = useSession()
  const [failed, setFailed] = useState(false)
  const [busy, setBusy] = useState(false)

  async function leave() {
    setBusy(true)
    setFailed(false)
    try {
      await signOut()
    } catch {
      setFailed(true)
      setBusy(false)
    }
  }

  return (
    <>
      <Button kind={kind} busy={busy} onClick={() => void leave()}>
        {shell.signOut}
      </Button>
      {failed && <Notice kind="error">{shell.stillSignedIn}</Notice>}
    </>
  )
}
