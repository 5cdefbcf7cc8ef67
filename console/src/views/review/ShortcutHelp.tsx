import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Button } from '../../ui/Button'
import { Modal } from '../../ui/Modal'

interface Props {
  isOn: boolean
  onChoice: (isOn: boolean) => void
  onClose: () => void
}

/** Tells what the keys do. */
export function ShortcutHelp({ isOn, onChoice, onClose }: Props) {
  return (
    <Modal label={texts.shortcuts.title} className="review-help" onClose={onClose}>
      <h2>{texts.shortcuts.title}</h2>
      <dl className="key-values">
        {texts.shortcuts.keys.map(([keys, deed]) => (
          <div key={deed}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{deed}</dd>
          </div>
        ))}
      </dl>
      <label>
        <input type="checkbox" checked={isOn} onChange={(event) => onChoice(event.target.checked)} />{' '}
        {texts.shortcuts.on}
      </label>
      <div className="buttons">
        <Button kind="primary" onClick={onClose}>
          {shared.close}
        </Button>
      </div>
    </Modal>
  )
}
