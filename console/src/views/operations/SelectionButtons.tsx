import type { DeadLetter } from '../../api/model'
import { operations } from '../../texts/operations'
import { Button } from '../../ui/Button'
import type { Asked } from './DeedDialog'

const texts = operations.letters

interface Props {
  letters: DeadLetter[]
  selected: ReadonlySet<string>
  isBusy: boolean
  onSelect: (ids: string[]) => void
  onAsk: (asked: Asked) => void
}

/** What is done with the letters that are selected. */
export function SelectionButtons({ letters, selected, isBusy, onSelect, onAsk }: Props) {
  const chosen = letters.filter(({ id }) => selected.has(id)).map(({ id }) => id)
  const isNone = chosen.length === 0
  return (
    <div className="buttons operations-selection">
      <span className="soft" role="status">
        {texts.selected(chosen.length)}
      </span>
      <Button kind="quiet" onClick={() => onSelect(isNone ? letters.map(({ id }) => id) : [])}>
        {isNone ? texts.selectAll : texts.selectNone}
      </Button>
      <Button disabled={isNone || isBusy} onClick={() => onAsk({ deed: 'requeue', ids: chosen })}>
        {texts.allOf(texts.deeds.requeue)}
      </Button>
      <Button kind="danger" disabled={isNone || isBusy} onClick={() => onAsk({ deed: 'discard', ids: chosen })}>
        {texts.allOf(texts.deeds.discard)}
      </Button>
    </div>
  )
}
