import { review as texts } from '../../texts/review'
import type { RasterTold } from './documents'
import { BYTE, type Range } from './look'

interface ChannelProps {
  name: string
  told: RasterTold
  band: number
  /** Null: as it is. */
  range: Range | null
  onBand: (band: number) => void
  onRange: (range: Range) => void
}

/** One band, and the values between which it is drawn. */
export function Channel({ name, told, band, range, onBand, onRange }: ChannelProps) {
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
