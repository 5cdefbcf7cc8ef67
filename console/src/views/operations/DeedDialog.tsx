import { useQueryClient } from '@tanstack/react-query'

import { operations } from '../../texts/operations'
import { Dialog } from '../../ui/Dialog'
import { dealWith, type LetterDeed } from './bulk'

const texts = operations.letters

/** What a dialog asks about: one letter, or those that are selected. */
export interface Asked {
  deed: LetterDeed
  ids: string[]
}

interface Props {
  asked: Asked
  onMany: () => void
  onClose: () => void
}

/** Asks before letters are dealt with: one at once, many in the sight of the page. */
export function DeedDialog({ asked: { deed, ids }, onMany, onClose }: Props) {
  const client = useQueryClient()
  const only = ids.length === 1 ? ids[0] : undefined
  const name = texts.deeds[deed]

  async function confirm() {
    if (only === undefined) return onMany()
    await dealWith(deed, only)
    void client.invalidateQueries({ queryKey: ['queues'] })
  }

  return (
    <Dialog
      title={texts.manyOf(name, ids.length)}
      action={name}
      kind={deed === 'discard' ? 'danger' : 'primary'}
      onConfirm={confirm}
      onClose={onClose}
    >
      {only && <code className="operations-id">{only}</code>}
      <p>{only === undefined ? texts.aboutMany[deed](ids.length) : texts.about[deed]}</p>
    </Dialog>
  )
}
