import { useEffect, useRef } from 'react'

import { operations } from '../../texts/operations'
import { Button } from '../../ui/Button'
import { Card, CopyButton } from '../../ui/parts'
import type { Issued } from './clientDeeds'

const texts = operations.clients

/** A new key, until someone says that it is stored: it cannot be shown again. */
export function IssuedKey({ issued, onDismiss }: { issued: Issued; onDismiss: () => void }) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => place.current?.focus(), [issued])
  const title = texts.keyOf(issued.clientId)
  return (
    <Card title={title} actions={<Button onClick={onDismiss}>{texts.keyStored}</Button>}>
      <div className="operations-key notice tone-warn" ref={place} tabIndex={-1} role="group" aria-label={title}>
        <p>{texts.keyOnce}</p>
        <code>{issued.key}</code>
        <CopyButton text={issued.key} label={texts.copyKey} />
      </div>
    </Card>
  )
}
