import { useEffect, useRef, type KeyboardEvent } from 'react'

import { MERGED_COUNT, type Properties } from '../../map'
import { map as mapTexts } from '../../texts/map'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Button } from '../../ui/Button'
import { KeyValues } from '../../ui/parts'

const MOST_SHOWN = 10

/** The properties of the features that were clicked. */
export function PickedFeatures({ features, onClose }: { features: Properties[]; onClose: () => void }) {
  const panel = useRef<HTMLElement>(null)
  useEffect(() => {
    const before = document.activeElement
    panel.current?.focus()
    return () => {
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  const left = features.length - MOST_SHOWN
  const leave = ({ key }: KeyboardEvent) => key === 'Escape' && onClose()
  return (
    <section ref={panel} className="review-picked" tabIndex={-1} aria-label={texts.map.picked} onKeyDown={leave}>
      <header>
        <h3>{texts.map.picked}</h3>
        <Button kind="quiet" onClick={onClose}>
          {shared.close}
        </Button>
      </header>
      {features.slice(0, MOST_SHOWN).map((properties, place) =>
        MERGED_COUNT in properties ? (
          <p key={place}>{mapTexts.merged(Number(properties[MERGED_COUNT]))}</p>
        ) : (
          <KeyValues key={place} items={Object.entries(properties).map(([name, value]) => [name, String(value)])} />
        ),
      )}
      {left > 0 && <p className="soft">{texts.map.more(left)}</p>}
    </section>
  )
}
