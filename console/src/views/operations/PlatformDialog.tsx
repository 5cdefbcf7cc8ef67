import { useState, type ReactNode } from 'react'

import { content, orchestrator } from '../../api/client'
import type { Platform } from '../../api/model'
import { operations } from '../../texts/operations'
import { Dialog } from '../../ui/Dialog'
import { Field } from '../../ui/Field'
import { changeOf, formOf, newPlatform, type LineName, type PlatformForm } from './platformForm'

const texts = operations.platforms
const ID_MAX = 50
const NAME_MAX = 255
const DESCRIPTION_MAX = 2000

interface Props {
  /** The one to change; a new one is added where there is none. */
  platform: Platform | null
  onDone: () => void
  onClose: () => void
}

export function PlatformDialog({ platform, onDone, onClose }: Props) {
  const [form, setForm] = useState<PlatformForm>(() => formOf(platform))
  const line = (name: LineName, more: Omit<LineProps, 'value' | 'onChange'>) => (
    <Line {...more} value={form[name]} onChange={(value) => setForm({ ...form, [name]: value })} />
  )

  async function confirm() {
    await save(platform, form)
    onDone()
  }

  const identityHint = (hint: string) => (platform ? texts.inUseHint : hint)
  return (
    <Dialog
      title={platform ? texts.changing(platform.display_name) : texts.add}
      action={platform ? texts.change : texts.add}
      onConfirm={confirm}
      onClose={onClose}
    >
      {!platform && line('id', { label: texts.id, hint: texts.idHint, maxLength: ID_MAX, pattern: '[a-z0-9_]+' })}
      {line('name', { label: texts.name, maxLength: NAME_MAX })}
      {line('description', { label: texts.description, maxLength: DESCRIPTION_MAX, isOptional: true })}
      {line('required', { label: texts.required, hint: identityHint(texts.requiredHint) })}
      {line('optional', { label: texts.optional, hint: texts.optionalHint, isOptional: true })}
      {line('version', { label: texts.version, hint: identityHint(texts.versionHint) })}
      {line('sources', {
        label: texts.sources,
        hint: platform ? texts.sourcesChangeHint : texts.sourcesHint,
        isOptional: !platform,
      })}
      <label className="field">
        <span>
          <input
            type="checkbox"
            checked={form.fourEyes}
            onChange={(event) => setForm({ ...form, fourEyes: event.target.checked })}
          />{' '}
          {texts.fourEyes}
        </span>
        <span className="field-hint">{texts.fourEyesHint}</span>
      </label>
    </Dialog>
  )
}

function save(platform: Platform | null, form: PlatformForm): Promise<unknown> {
  if (!platform) return content(orchestrator.POST('/api/v1/platforms', { body: newPlatform(form) }))
  const params = { path: { platform_id: platform.platform_id } }
  return content(orchestrator.PATCH('/api/v1/platforms/{platform_id}', { params, body: changeOf(platform, form) }))
}

interface LineProps {
  label: string
  hint?: ReactNode
  pattern?: string
  maxLength?: number
  isOptional?: boolean
  value: string
  onChange: (value: string) => void
}

function Line({ label, hint, isOptional = false, onChange, ...rest }: LineProps) {
  return (
    <Field label={label} hint={hint}>
      {(control) => (
        <input
          {...control}
          {...rest}
          required={!isOptional}
          autoComplete="off"
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}
