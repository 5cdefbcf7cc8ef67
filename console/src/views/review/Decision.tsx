/** The decision: approve with a clearance, or reject with a reason. */

import { useState } from 'react'

import { content, gateway } from '../../api/client'
import type { AssetChange } from '../../api/model'
import { Overtaken, useChange, type Standing } from '../../parts/overtaken'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Dialog } from '../../ui/Dialog'
import { Field } from '../../ui/Field'
import { Effects } from './Effects'
import { whichOf, type UnderReview } from './underReview'

type Clearance = 'ouo' | 'public'
const CLEARANCES: readonly Clearance[] = ['ouo', 'public']
const TEXT_MAX = 2000

interface Props {
  /** As it was when the dialog was opened: what changes meanwhile must not be decided by it. */
  seen: UnderReview
  name: string
  onDone: (change: AssetChange) => void
  onClose: () => void
}

export function ApproveDialog({ seen, name, onDone, onClose }: Props) {
  const { change, now } = useChange(seen.asset, seen.version.version_ordinal)
  const { clearance_state: cleared } = now?.asset ?? seen.asset
  const [clearance, setClearance] = useState(CLEARANCES.find((each) => each === cleared) ?? null)
  const [note, setNote] = useState('')
  const approve = (expected_version: number) => {
    const body = { ...whichOf(seen), expected_version, clearance_level: clearance!, note: note.trim() || null }
    return content(gateway.POST('/api/platform/approve', { body }))
  }
  return (
    <Dialog
      title={texts.approve.title(name)}
      action={texts.approve.action}
      onClose={onClose}
      onConfirm={async () => onDone(await change(approve))}
    >
      <fieldset className="review-clearance">
        <legend>{texts.approve.clearance}</legend>
        {CLEARANCES.map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="clearance"
              required
              value={each}
              checked={clearance === each}
              onChange={() => setClearance(each)}
            />
            <span>
              <strong>{shared.states[each]}</strong>
              {cleared === each && <em> {texts.approve.now}</em>}
              <span className="soft">{texts.approve.meanings[each]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {cleared === 'public' && clearance === 'ouo' && <p>{texts.approve.takesBack}</p>}
      <Effects seen={seen} clearance={clearance} />
      <Field label={texts.approve.note} hint={texts.approve.noteHint}>
        {(control) => (
          <textarea {...control} maxLength={TEXT_MAX} value={note} onChange={(event) => setNote(event.target.value)} />
        )}
      </Field>
      <Overtaken now={now} revisions={revisionsOf(seen, now)} onLoad={onClose} />
    </Dialog>
  )
}

export function RejectDialog({ seen, name, onDone, onClose }: Props) {
  const { change, now } = useChange(seen.asset, seen.version.version_ordinal)
  const [reason, setReason] = useState('')
  const reject = (expected_version: number) => {
    const body = { ...whichOf(seen), expected_version, reason: reason.trim() }
    return content(gateway.POST('/api/platform/reject', { body }))
  }
  return (
    <Dialog
      title={texts.reject.title(name)}
      action={texts.reject.action}
      kind="danger"
      onClose={onClose}
      onConfirm={async () => onDone(await change(reject))}
    >
      <Field label={shared.reason} hint={texts.reject.hint}>
        {(control) => (
          <textarea
            {...control}
            required
            maxLength={TEXT_MAX}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        )}
      </Field>
      <Overtaken now={now} revisions={revisionsOf(seen, now)} onLoad={onClose} />
    </Dialog>
  )
}

function revisionsOf({ version }: UnderReview, now: Standing | null) {
  return { seen: version.revision ?? 1, there: now?.version?.revision }
}
