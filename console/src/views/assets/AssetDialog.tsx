import { useState } from 'react'

import { Problem } from '../../api/problem'
import type { Asset, AssetVersion } from '../../api/model'
import { assets } from '../../texts/assets'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Field } from '../../ui/Field'
import { carryOut, type Level, type Outcome, type Said } from './changes'
import type { Action } from './standing'

const texts = assets.dialogs
const REASON_MAX = 2000
const HAS_REASON = new Set<Action>(['unpublish', 'revoke', 'reprocess'])
const IS_GRAVE = new Set<Action>(['unpublish', 'revoke', 'delete'])

interface Props {
  action: Action
  asset: Asset
  version: AssetVersion | null
  onDone: (outcome: Outcome) => void
  onReload: () => void
  onClose: () => void
}

/** Asks what a change needs to be told, and makes it. The asset counts as it was when the dialog was opened. */
export function AssetDialog({ action, asset, version, onDone, onReload, onClose }: Props) {
  const [said, setSaid] = useState<Said>(() => firstSaid(action, asset, version))
  const [isStale, setStale] = useState(false)

  async function confirm() {
    setStale(false)
    try {
      onDone(await carryOut({ ...said, reason: said.reason.trim() }))
    } catch (problem) {
      setStale(problem instanceof Problem && problem.code === 'stale_version')
      throw problem
    }
  }

  const name = assets.actions[action]
  return (
    <Dialog
      title={said.ordinal === null ? name : texts.of(name, said.ordinal)}
      action={name}
      kind={IS_GRAVE.has(action) ? 'danger' : 'primary'}
      onConfirm={confirm}
      onClose={onClose}
    >
      <Asking said={said} onSay={(more) => setSaid({ ...said, ...more })} />
      {action === 'unpublish' && <TypedId id={asset.short_id ?? asset.asset_id} />}
      {isStale && <Button onClick={onReload}>{texts.reload}</Button>}
    </Dialog>
  )
}

function firstSaid(action: Action, asset: Asset, version: AssetVersion | null): Said {
  return {
    action,
    assetId: asset.asset_id,
    expected: asset.version,
    ordinal: version?.version_ordinal ?? null,
    reason: '',
    level: asset.clearance_state === 'public' ? 'ouo' : 'public',
    urlMode: asset.url_mode === 'latest_only' ? 'all_versions' : 'latest_only',
  }
}

function Asking({ said, onSay }: { said: Said; onSay: (more: Partial<Said>) => void }) {
  const { action } = said
  if (action === 'clearance') {
    const levels = Object.entries(texts.levels)
    return (
      <Choosing
        label={texts.clearance}
        choices={levels}
        value={said.level}
        onChange={(level) => onSay({ level: level as Level })}
      />
    )
  }
  if (action === 'urlMode') {
    return (
      <Choosing
        label={texts.urlMode}
        choices={Object.entries(assets.urlModes)}
        value={said.urlMode}
        onChange={(mode) => onSay({ urlMode: mode as Said['urlMode'] })}
      />
    )
  }
  return (
    <>
      <p>{texts[action]}</p>
      {HAS_REASON.has(action) && (
        <Reason value={said.reason} isRequired={action !== 'unpublish'} onChange={(reason) => onSay({ reason })} />
      )}
    </>
  )
}

interface ChoosingProps {
  label: string
  choices: [string, string][]
  value: string
  onChange: (value: string) => void
}

function Choosing({ label, choices, value, onChange }: ChoosingProps) {
  return (
    <fieldset className="assets-choosing">
      <legend>{label}</legend>
      {choices.map(([choice, words]) => (
        <label key={choice}>
          <input type="radio" name="choice" checked={choice === value} onChange={() => onChange(choice)} />
          {words}
        </label>
      ))}
    </fieldset>
  )
}

interface ReasonProps {
  value: string
  isRequired: boolean
  onChange: (value: string) => void
}

function Reason({ value, isRequired, onChange }: ReasonProps) {
  return (
    <Field label={isRequired ? texts.reason : texts.reasonOptional}>
      {(control) => (
        <textarea
          {...control}
          value={value}
          required={isRequired}
          maxLength={REASON_MAX}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  )
}

/** What cannot be undone by a click is not done by one: the browser holds the form back until the id stands there. */
function TypedId({ id }: { id: string }) {
  return (
    <Field label={texts.confirm(id)}>
      {(control) => (
        <input {...control} required pattern={id} title={texts.confirmHint(id)} autoComplete="off" spellCheck={false} />
      )}
    </Field>
  )
}
