import { operations } from '../../texts/operations'
import { Button } from '../../ui/Button'
import { Modal } from '../../ui/Modal'
import { CopyButton } from '../../ui/parts'
import type { Issued } from './clientDeeds'

const texts = operations.clients

/** A new key, until someone says that it is stored: it cannot be shown again. */
export function IssuedKey({ issued, onStored }: { issued: Issued; onStored: () => void }) {
  const title = texts.keyOf(issued.clientId)
  return (
    <Modal label={title} role="alertdialog" className="operations-issued" isHeld onClose={onStored}>
      <h2>{title}</h2>
      <div className="operations-key notice tone-warn" role="group" aria-label={title}>
        <p>{texts.keyOnce}</p>
        <code>{issued.key}</code>
        <CopyButton text={issued.key} label={texts.copyKey} />
      </div>
      <div className="buttons">
        <Button kind="primary" onClick={onStored}>
          {texts.keyStored}
        </Button>
      </div>
    </Modal>
  )
}
