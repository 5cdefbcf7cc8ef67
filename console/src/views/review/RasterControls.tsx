import { review as texts } from '../../texts/review'
import { Button } from '../../ui/Button'
import { Field } from '../../ui/Field'
import { Channel } from './Channel'
import type { RasterTold } from './documents'
import { BYTE, CHANNELS, COLOUR_MAPS, suggestedRanges, usualLook, type Look, type Range } from './look'

interface Props {
  told: RasterTold
  look: Look
  onLook: (look: Look) => void
}

/** Which bands are seen, between which values, and in which colours. */
export function RasterControls({ told, look, onLook }: Props) {
  return (
    <div className="review-look" role="group" aria-label={texts.look.title}>
      {told.info.count >= 3 && <ShownBands told={told} look={look} onLook={onLook} />}
      <Button
        title={texts.look.autoHint}
        disabled={look.ranges === null}
        onClick={() => onLook({ ...look, ranges: null })}
      >
        {texts.look.auto}
      </Button>
      <Channels told={told} look={look} onLook={onLook} />
      {look.bands.length === 1 && <Colours look={look} onLook={onLook} />}
    </div>
  )
}

/** Three bands, or one. */
function ShownBands({ told, look, onLook }: Props) {
  const one: Look = { ...look, bands: [1], ranges: null }
  return (
    <Field label={texts.look.shown}>
      {(control) => (
        <select
          {...control}
          value={look.bands.length}
          onChange={(event) => onLook(event.target.value === '1' ? one : usualLook(told))}
        >
          <option value={3}>{texts.look.threeBands}</option>
          <option value={1}>{texts.look.oneBand}</option>
        </select>
      )}
    </Field>
  )
}

function Colours({ look, onLook }: Omit<Props, 'told'>) {
  return (
    <Field label={texts.look.colours}>
      {(control) => (
        <select
          {...control}
          value={look.colours ?? ''}
          onChange={(event) => onLook({ ...look, colours: event.target.value || null })}
        >
          <option value="">{texts.look.grey}</option>
          {COLOUR_MAPS.map((name) => (
            <option key={name} value={name}>
              {texts.look.colourMaps[name]}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

/** The band of each channel, and the values between which it is drawn. */
function Channels({ told, look, onLook }: Props) {
  const isSingle = look.bands.length === 1
  const ranges = look.ranges ?? suggestedRanges(told, look)

  function chooseBand(place: number, band: number) {
    onLook({ ...look, bands: look.bands.map((each, index) => (index === place ? band : each)), ranges: null })
  }

  function chooseRange(place: number, range: Range) {
    onLook({ ...look, ranges: look.bands.map((_, index) => (index === place ? range : (ranges?.[index] ?? BYTE))) })
  }

  return (
    <div className={isSingle ? 'review-channels' : 'review-channels three'}>
      {look.bands.map((band, place) => (
        <Channel
          key={place}
          name={isSingle ? texts.look.band : texts.look.channels[CHANNELS[place]!]}
          told={told}
          band={band}
          range={ranges?.[place] ?? null}
          onBand={(chosen) => chooseBand(place, chosen)}
          onRange={(range) => chooseRange(place, range)}
        />
      ))}
    </div>
  )
}
