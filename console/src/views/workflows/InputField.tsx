import type { InputSpec } from '../../api/model'
import { workflows } from '../../texts/workflows'
import { Field } from '../../ui/Field'
import { choicesOf, textOf } from './inputs'

const texts = workflows.form

interface Props {
  name: string
  spec: InputSpec
  text: string
  error?: string
  onChange: (text: string) => void
  onLeave: () => void
}

/** The field of one input, after its type. */
export function InputField({ name, spec, text, error, onChange, onLeave }: Props) {
  const className = isLong(spec) ? 'workflow-long' : ''
  return (
    <Field label={labelOf(name, spec)} hint={hintOf(spec, text)} error={error} className={className}>
      {(props) => (
        <Control
          {...props}
          spec={spec}
          name={name}
          value={text}
          aria-required={spec.required}
          onBlur={onLeave}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

interface ControlProps {
  id: string
  'aria-describedby': string | undefined
  'aria-invalid': true | undefined
  'aria-required': boolean
  name: string
  value: string
  onBlur: () => void
  onChange: (event: { target: { value: string } }) => void
}

function Control({ spec, ...rest }: ControlProps & { spec: InputSpec }) {
  if (choicesOf(spec))
    return (
      <select {...rest}>
        <Choices spec={spec} />
      </select>
    )
  if (isLong(spec)) return <textarea {...rest} className="mono" rows={3} spellCheck={false} />
  return <input {...rest} inputMode={KEYS[spec.type]} autoComplete="off" spellCheck={false} />
}

const KEYS: Partial<Record<InputSpec['type'], 'numeric' | 'decimal'>> = { integer: 'numeric', number: 'decimal' }

function isLong({ type, enum: choices }: InputSpec): boolean {
  return !choices && (type === 'array' || type === 'object')
}

function labelOf(name: string, spec: InputSpec): string {
  return spec.required ? texts.required(name) : name
}

function Choices({ spec }: { spec: InputSpec }) {
  const hasDefault = (spec.default ?? null) !== null
  return (
    <>
      {!hasDefault && <option value="">{texts.notGiven}</option>}
      {choicesOf(spec)?.map((value) => (
        <option key={textOf(spec, value)} value={textOf(spec, value)}>
          {nameOf(value)}
        </option>
      ))}
    </>
  )
}

function nameOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? texts.yes : texts.no
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** What is to be written; where nothing is, also what stands for it. */
function hintOf(spec: InputSpec, text: string): string | undefined {
  const { description, minimum = null, maximum = null, pattern } = spec
  const hasRange = minimum !== null || maximum !== null
  const parts = [
    description,
    choicesOf(spec) ? null : texts.types[spec.type],
    hasRange ? texts.range(numberOf(minimum), numberOf(maximum)) : null,
    pattern ? texts.pattern(pattern) : null,
    text === '' && (spec.default ?? null) !== null ? texts.byDefault(JSON.stringify(spec.default)) : null,
  ]
  return parts.filter(Boolean).join(' ') || undefined
}

function numberOf(value: number | null): string | null {
  return value === null ? null : String(value)
}
