import type { Client } from '../../api/model'
import { useSession } from '../../session/session'
import { operations } from '../../texts/operations'
import { Dialog } from '../../ui/Dialog'
import { Notice } from '../../ui/notices'
import { dealWith, type ClientDeed, type Issued } from './clientDeeds'

const texts = operations.clients
const YOURSELF = { rotate: texts.yourselfAnew, disable: texts.yourself, enable: null }
const ABOUT = { rotate: texts.aboutRotate, disable: texts.aboutDisable, enable: texts.aboutEnable }

interface Props {
  deed: ClientDeed
  client: Client
  /** Is given the key that was made, and whether it is the one of who is signed in. */
  onDone: (issued: Issued | null, isOwn: boolean) => void
  onClose: () => void
}

/** Asks before a key is made anew, or counts no more. */
export function ClientDialog({ deed, client, onDone, onClose }: Props) {
  const { caller } = useSession()
  const isOwn = caller?.name === client.client_id
  const warning = isOwn ? YOURSELF[deed] : null
  return (
    <Dialog
      title={texts.ofClient(texts[deed], client.client_id)}
      action={texts[deed]}
      kind={deed === 'enable' ? 'primary' : 'danger'}
      onConfirm={async () => onDone(await dealWith(deed, client.client_id), isOwn)}
      onClose={onClose}
    >
      <p>{ABOUT[deed]}</p>
      {warning && <Notice kind="warning">{warning}</Notice>}
    </Dialog>
  )
}
