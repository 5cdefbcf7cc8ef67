import { review as texts } from '../../texts/review'
import { Button } from '../../ui/Button'
import { Field } from '../../ui/Field'
import type { RasterTold } from './documents'
import { CHANNELS, COLOUR_MAPS, suggestedRanges, usualLook, type Look, type Range } from './look'

/** What is not stretched is seen as it is. */
const BYTE: Range = [0, 255]

interface Props {
  told: RasterTold
  look: Look
  onLook: (look: Look) => void
}

/** Which bands are seen, between which values, and in which colours. */
export function RasterControls({ told, look, onLook }: Props) {
  const isSingle = look.bands.length === 1
  const usual = usualLook(told)
  const ranges = look.ranges ?? suggestedRanges(told, look)

  function chooseBand(place: number, band: number) {
    onLook({ ...look, bands: look.bands.map((each, index) => (index === place ? band : each)), ranges: null })
  }

  function chooseRange(place: number, range: Range) {
    onLook({ ...look, ranges: look.bands.map((_, index) => (index === place ? range : (ranges?.[index] ?? BYTE))) })
  }

  return (
    <div className="review-look" role="group" aria-label={texts.look.title}>
      {told.info.count >= 3 && (
        <Field label={texts.look.shown}>
          {(control) => (
            <select
              {...control}
              value={look.bands.length}
              onChange={(event) => onLook(event.target.value === '1' ? { ...look, bands: [1], ranges: null } : usual)}
            >
              <option value={3}>{texts.look.threeBands}</option>
              <option value={1}>{texts.look.oneBand}</option>
            </select>
          )}
        </Field>
      )}
      <Button
        title={texts.look.autoHint}
        disabled={look.ranges === null}
        onClick={() => onLook({ ...look, ranges: null })}
      >
        {texts.look.auto}
      </Button>
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
      {isSingle && (
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
      )}
    </div>
  )
}

interface ChannelProps {
  name: string
  told: RasterTold
  band: number
  /** Null: as it is. */
  range: Range | null
  onBand: (band: number) => void
  onRange: (range: Range) => void
}

function Channel({ name, told, band, range, onBand, onRange }: ChannelProps) {
  const [low, high] = range ?? BYTE
  return (
    <fieldset className="review-channel">
      <legend>{name}</legend>
      <select
        aria-label={texts.look.bandOf(name)}
        value={band}
        onChange={(event) => onBand(Number(event.target.value))}
      >
        {told.info.band_descriptions.map(([id, description], index) => (
          <option key={id} value={index + 1}>
            {description ? `${index + 1} ${description}` : String(index + 1)}
          </option>
        ))}
      </select>
      <End
        label={texts.look.lowest(name)}
        value={range?.[0]}
        onEnd={(value) => value < high && onRange([value, high])}
      />
      <End
        label={texts.look.highest(name)}
        value={range?.[1]}
        onEnd={(value) => value > low && onRange([low, value])}
      />
    </fieldset>
  )
}

interface EndProps {
  label: string
  value: number | undefined
  /** False: it cannot be so. */
  onEnd: (value: number) => void | false
}

/** One end of a range. It is taken when the field is left: half a number would draw another picture. */
function End({ label, value, onEnd }: EndProps) {
  const shown = value === undefined ? '' : legible(value)
  function take(input: HTMLInputElement) {
    input.setCustomValidity('')
    if (input.value === '' || input.value === shown || onEnd(Number(input.value)) !== false) return
    input.setCustomValidity(texts.look.order)
    input.reportValidity()
  }
  return (
    <input
      key={shown}
      type="number"
      step="any"
      aria-label={label}
      placeholder={texts.look.asIs}
      defaultValue={shown}
      onBlur={(event) => take(event.currentTarget)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') take(event.currentTarget)
      }}
    />
  )
}

/** A number that fits its field; the picture is drawn with all of its digits until another is written. */
function legible(value: number): string {
  return String(Math.abs(value) >= 1000 ? Math.round(value) : Number(value.toPrecision(4)))
}
