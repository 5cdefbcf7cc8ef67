/** The decision: approve with a clearance, or reject with a reason. */

import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'

import { content, gateway } from '../../api/client'
import type { AssetChange } from '../../api/model'
import { Problem } from '../../api/problem'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Dialog } from '../../ui/Dialog'
import { Field } from '../../ui/Field'
import type { UnderReview } from './underReview'

type Clearance = 'ouo' | 'public'
const CLEARANCES: readonly Clearance[] = ['ouo', 'public']

/** What was decided on, as it was seen when the dialog was opened: what changes meanwhile must not be decided by it. */
export interface Seen {
  assetId: string
  ordinal: number
  assetVersion: number
  clearance: string
}

export function seenNow({ asset, version }: UnderReview): Seen {
  return {
    assetId: asset.asset_id,
    ordinal: version.version_ordinal,
    assetVersion: asset.version ?? 1,
    clearance: asset.clearance_state ?? 'uncleared',
  }
}

interface Props {
  seen: Seen
  name: string
  onDone: (change: AssetChange) => void
  /** Someone else changed the asset meanwhile. */
  onConflict: (problem: Problem) => void
  onClose: () => void
}

export function ApproveDialog({ seen, name, onClose, ...told }: Props) {
  const [clearance, setClearance] = useState(CLEARANCES.find((each) => each === seen.clearance) ?? null)
  const decide = useDecision(told)
  const body = { asset_id: seen.assetId, version_ordinal: seen.ordinal, expected_version: seen.assetVersion }
  return (
    <Dialog
      title={texts.approve.title(name)}
      action={texts.approve.action}
      onClose={onClose}
      onConfirm={() =>
        decide(gateway.POST('/api/platform/approve', { body: { ...body, clearance_level: clearance! } }))
      }
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
              {seen.clearance === each && <em> {texts.approve.now}</em>}
              <span className="soft">{texts.approve.meanings[each]}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {seen.clearance === 'public' && clearance === 'ouo' && <p>{texts.approve.takesBack}</p>}
    </Dialog>
  )
}

export function RejectDialog({ seen, name, onClose, ...told }: Props) {
  const [reason, setReason] = useState('')
  const decide = useDecision(told)
  const body = { asset_id: seen.assetId, version_ordinal: seen.ordinal, expected_version: seen.assetVersion }
  return (
    <Dialog
      title={texts.reject.title(name)}
      action={texts.reject.action}
      kind="danger"
      onClose={onClose}
      onConfirm={() => decide(gateway.POST('/api/platform/reject', { body: { ...body, reason: reason.trim() } }))}
    >
      <Field label={shared.reason} hint={texts.reject.hint}>
        {(control) => (
          <textarea
            {...control}
            required
            maxLength={2000}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        )}
      </Field>
    </Dialog>
  )
}

/** Waits for the answer, and has what it changed read anew. A conflict ends the dialog: it was about something else. */
function useDecision({ onDone, onConflict }: Pick<Props, 'onDone' | 'onConflict'>) {
  const client = useQueryClient()
  return async (answer: Promise<{ data?: AssetChange }>) => {
    try {
      onDone(await content(answer))
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409) throw error
      onConflict(error)
    }
    await client.invalidateQueries({ predicate: ({ queryKey }) => CHANGED.has(String(queryKey[0])) })
  }
}

const CHANGED = new Set(['asset', 'assets', 'reviews', 'overview'])
