import { workflows } from '../../texts/workflows'
import { Field } from '../../ui/Field'
import { SHORT_MAX, type Written } from './submission'

const texts = workflows.form

interface FieldState {
  error?: string
  onLeave: () => void
}

interface Props {
  written: Written
  onChange: (part: Partial<Written>) => void
  /** How the field of the submission with this name stands. */
  field: (name: string) => FieldState
}

/** What every job has beside its inputs. */
export function JobOptions({ written, onChange, field }: Props) {
  const priority = field('priority')
  return (
    <details className="workflow-more">
      <summary>{texts.more}</summary>
      <div className="workflow-inputs">
        <Field label={texts.priority} hint={texts.priorityHint} error={priority.error}>
          {(props) => (
            <input
              {...props}
              inputMode="numeric"
              value={written.priority}
              onBlur={priority.onLeave}
              onChange={(event) => onChange({ priority: event.target.value })}
            />
          )}
        </Field>
        <Text
          label={texts.correlation}
          hint={texts.correlationHint}
          error={field('correlation_id').error}
          value={written.correlationId}
          onChange={(correlationId) => onChange({ correlationId })}
        />
        <Text
          label={texts.key}
          hint={texts.keyHint}
          error={field('idempotency_key').error}
          value={written.idempotencyKey}
          onChange={(idempotencyKey) => onChange({ idempotencyKey })}
        />
      </div>
    </details>
  )
}

interface TextProps {
  label: string
  hint: string
  error: string | undefined
  value: string
  onChange: (value: string) => void
}

function Text({ label, hint, error, value, onChange }: TextProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(props) => (
        <input
          {...props}
          maxLength={SHORT_MAX}
          autoComplete="off"
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

/** What becomes of a job that is found in place of a new one. */
export function Resume({ written, onChange }: Pick<Props, 'written' | 'onChange'>) {
  return (
    <div className="workflow-resume">
      <label>
        <input
          type="checkbox"
          checked={written.resume}
          onChange={(event) => onChange({ resume: event.target.checked })}
        />
        {texts.resume}
      </label>
      <span className="soft">{texts.resumeHint}</span>
    </div>
  )
}
