import { approvalStateValues, clearanceStateValues, dataTypeValues, processingStateValues } from '../../api/gateway'
import type { Platform } from '../../api/model'
import { assets } from '../../texts/assets'
import { shared } from '../../texts/shared'
import { Button } from '../../ui/Button'
import { Choice } from '../../ui/Choice'
import { Field } from '../../ui/Field'
import { TypedText } from '../../ui/TypedText'
import { isFiltered, isWholeNumber, refsOf, withRef } from './filters'

const texts = assets.filters
const TEXT_MAX = 256
const REF_MAX = 512

interface Props {
  parameters: URLSearchParams
  platforms: Platform[]
  onChange: (changes: Record<string, string | null>) => void
  onClear: () => void
}

export function AssetFilters({ parameters, platforms, onChange, onClear }: Props) {
  const choice = (label: string, name: string, values: readonly string[], words: Record<string, string>) => (
    <Choice
      label={label}
      any={assets.any}
      value={parameters.get(name) ?? ''}
      choices={values.map((value) => [value, words[value] ?? value])}
      onChange={(value) => onChange({ [name]: value })}
    />
  )
  return (
    <form className="filters" role="search" aria-label={texts.label} onSubmit={(event) => event.preventDefault()}>
      <Field label={texts.text} className="assets-text">
        {(control) => (
          <TypedText
            {...control}
            type="search"
            placeholder={texts.textHint}
            maxLength={TEXT_MAX}
            value={parameters.get('q') ?? ''}
            onChange={(q) => onChange({ q })}
          />
        )}
      </Field>
      <Choice
        label={texts.partner}
        any={assets.any}
        value={parameters.get('platform') ?? ''}
        choices={platforms.map((platform) => [platform.platform_id, partnerName(platform)])}
        onChange={(platform) => onChange({ platform, refs: null })}
      />
      <RefFields parameters={parameters} platforms={platforms} onChange={onChange} />
      {choice(texts.dataType, 'data_type', dataTypeValues, shared.dataTypes)}
      {choice(texts.clearance, 'clearance_state', clearanceStateValues, shared.states)}
      {choice(texts.approval, 'approval_state', approvalStateValues, shared.states)}
      {choice(texts.processing, 'processing_state', processingStateValues, shared.states)}
      <label className="assets-check">
        <input
          type="checkbox"
          checked={parameters.get('deleted') === 'true'}
          onChange={(event) => onChange({ deleted: event.target.checked ? 'true' : null })}
        />
        {texts.deleted}
      </label>
      {isFiltered(parameters) && (
        <Button kind="quiet" onClick={onClear}>
          {texts.clear}
        </Button>
      )}
    </form>
  )
}

function partnerName({ display_name, is_active }: Platform): string {
  return is_active ? display_name : texts.inactive(display_name)
}

/** The references that the chosen partner knows its datasets by. */
function RefFields({ parameters, platforms, onChange }: Omit<Props, 'onClear'>) {
  const platform = platforms.find(({ platform_id }) => platform_id === parameters.get('platform'))
  if (!platform) return null
  const refs = refsOf(parameters)
  const required = new Set(platform.required_refs)
  return [...platform.required_refs, ...(platform.optional_refs ?? [])].map((name) => (
    <RefField
      key={`${platform.platform_id} ${name}`}
      name={name}
      isRequired={required.has(name)}
      value={refs[name]}
      onChange={(text, isNumber) => onChange({ refs: withRef(refs, name, text, isNumber) })}
    />
  ))
}

interface RefProps {
  name: string
  isRequired: boolean
  value: string | number | undefined
  onChange: (text: string, isNumber: boolean) => void
}

function RefField({ name, isRequired, value, onChange }: RefProps) {
  const text = value === undefined ? '' : String(value)
  const isNumber = typeof value === 'number'
  return (
    <div className="assets-ref">
      <Field label={texts.ref(name, isRequired)}>
        {(control) => (
          <TypedText
            {...control}
            maxLength={REF_MAX}
            value={text}
            onChange={(typed) => onChange(typed, isNumber)}
          />
        )}
      </Field>
      {isWholeNumber(text) && (
        <label className="assets-check">
          <input type="checkbox" checked={isNumber} onChange={(event) => onChange(text, event.target.checked)} />
          {texts.asNumber(name)}
        </label>
      )}
    </div>
  )
}
