import { Field } from './Field'

interface Props {
  label: string
  value: string
  /** What the choice of nothing in particular is called; its value is the empty text. */
  any?: string
  /** Values, and what they are called. */
  choices: (readonly [string, string])[]
  onChange: (value: string) => void
}

export function Choice({ label, value, any, choices, onChange }: Props) {
  return (
    <Field label={label}>
      {(control) => (
        <select {...control} value={value} onChange={(event) => onChange(event.target.value)}>
          {any !== undefined && <option value="">{any}</option>}
          {choices.map(([each, name]) => (
            <option key={each} value={each}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}
