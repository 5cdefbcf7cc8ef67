import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import type { Asset, AssetVersion } from '../../api/model'
import { Overtaken, useChange } from '../../parts/overtaken'
import { assets } from '../../texts/assets'
import { shared } from '../../texts/shared'
import { Dialog } from '../../ui/Dialog'
import { Field } from '../../ui/Field'
import { carryOut, type Level, type Outcome, type Said } from './changes'
import * as queries from './queries'
import type { Action } from './standing'

const texts = assets.dialogs
const REASON_MAX = 2000
const HAS_REASON = new Set<Action>(['unpublish', 'revoke', 'reprocess'])
const IS_GRAVE = new Set<Action>(['unpublish', 'revoke', 'delete'])

/** What the dialog is told; which state of the asset was seen is not up to it. */
type Form = Omit<Said, 'expected'>

interface Props {
  action: Action
  asset: Asset
  version: AssetVersion | null
  onDone: (outcome: Outcome) => void
  onClose: () => void
}

/** Asks what a change needs to be told, and makes it. The asset counts as it was when the dialog was opened. */
export function AssetDialog({ action, asset, version, onDone, onClose }: Props) {
  const [said, setSaid] = useState<Form>(() => firstSaid(action, asset, version))
  const { change, now } = useChange(asset, said.ordinal)
  const served = useQuery({ ...queries.latestInService(asset), enabled: action === 'clearance' })
  const revision = said.revision ?? served.data?.approved_revision ?? null

  async function confirm() {
    onDone(await change((expected) => carryOut({ ...said, revision, expected, reason: said.reason.trim() })))
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
      {served.data && <p className="soft">{texts.served(served.data.version_ordinal, revision ?? 1)}</p>}
      <Overtaken
        now={now}
        revisions={revision === null ? undefined : { seen: revision, there: now?.version?.approved_revision }}
        onLoad={onClose}
      />
    </Dialog>
  )
}

function firstSaid(action: Action, asset: Asset, version: AssetVersion | null): Form {
  return {
    action,
    assetId: asset.asset_id,
    ordinal: version?.version_ordinal ?? null,
    revision: action === 'revoke' ? (version?.approved_revision ?? null) : null,
    reason: '',
    level: asset.clearance_state === 'public' ? 'ouo' : 'public',
    urlMode: asset.url_mode === 'latest_only' ? 'all_versions' : 'latest_only',
  }
}

function Asking({ said, onSay }: { said: Form; onSay: (more: Partial<Form>) => void }) {
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
    <Field label={isRequired ? shared.reason : texts.reasonOptional}>
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
