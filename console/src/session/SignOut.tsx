import { shell } from '../texts/shell'
import { Button } from '../ui/Button'
import { Notice } from '../ui/notices'
import { useSession } from './session'

/** Signs out. Where that fails the session goes on, which has to be said. */
export function SignOut({ kind }: { kind?: 'quiet' }) {
  const { signOut, signOutFailed } = useSession()
  return (
    <>
      <Button kind={kind} onClick={() => void signOut()}>
        {shell.signOut}
      </Button>
      {signOutFailed && <Notice kind="error">{shell.stillSignedIn}</Notice>}
    </>
  )
}
