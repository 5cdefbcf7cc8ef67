import { useState, type FormEvent, type ReactNode } from 'react'

import { shared } from '../texts/shared'
import { Button } from './Button'
import { Modal } from './Modal'
import { ProblemNotice } from './notices'

interface Props {
  title: string
  /** What the button says that does it. */
  action: string
  /** What the button says that leaves it. */
  dismiss?: string
  kind?: 'primary' | 'danger'
  onConfirm: () => Promise<unknown>
  onClose: () => void
  children?: ReactNode
}

/** Asks before something is done; it closes when that is done, and tells when it was refused. */
export function Dialog(props: Props) {
  const { title, action, dismiss = shared.cancel, kind = 'primary', onConfirm, onClose, children } = props
  const [error, setError] = useState<unknown>(null)
  const [busy, setBusy] = useState(false)

  async function confirm(event: FormEvent) {
    event.preventDefault()
    setBusy(true)
    setError(null)
    try {
      await onConfirm()
      onClose()
    } catch (problem) {
      setError(problem)
      setBusy(false)
    }
  }

  return (
    <Modal label={title} isHeld={busy} onClose={onClose}>
      <form onSubmit={(event) => void confirm(event)}>
        <h2>{title}</h2>
        {children}
        {error !== null && <ProblemNotice error={error} />}
        <div className="buttons">
          <Button disabled={busy} onClick={onClose}>{dismiss}</Button>
          <Button kind={kind} type="submit" busy={busy}>
            {action}
          </Button>
        </div>
      </form>
    </Modal>
  )
}
