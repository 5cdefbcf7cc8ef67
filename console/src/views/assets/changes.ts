/** The changes of an asset. Each says which state of it the person has seen: whoever was overtaken is refused. */

import { content, gateway } from '../../api/client'
import type { Asset, AssetChange } from '../../api/model'
import type { Action } from './standing'

export type Level = 'ouo' | 'public'

/** What a person has said in a dialog. */
export interface Said {
  action: Action
  assetId: string
  /** The asset's `version` that the person has seen. */
  expected: number
  ordinal: number | null
  /** The revision in service that the person has seen, where the change is about what is in service. */
  revision: number | null
  reason: string
  level: Level
  urlMode: Asset['url_mode']
}

/** What a change came to. */
export interface Outcome {
  action: Action
  isChanged: boolean
  warning: string | null
  jobId: string | null
}

export async function carryOut(said: Said): Promise<Outcome> {
  const answer = await REQUESTS[said.action](said)
  return {
    action: said.action,
    isChanged: 'changed' in answer ? answer.changed : true,
    warning: 'warning' in answer ? (answer.warning ?? null) : null,
    jobId: 'job_id' in answer ? (answer.job_id ?? null) : null,
  }
}

type Answered = AssetChange | { request_id: string; job_id?: string | null }

const REQUESTS: Record<Action, (said: Said) => Promise<Answered>> = {
  clearance: ({ assetId, expected, revision, level }) =>
    content(
      gateway.POST('/api/assets/{asset_id}/clearance', {
        params: { path: { asset_id: assetId } },
        body: { clearance_level: level, revision, expected_version: expected },
      }),
    ),
  urlMode: ({ assetId, expected, urlMode }) =>
    content(
      gateway.PATCH('/api/assets/{asset_id}', {
        params: { path: { asset_id: assetId } },
        body: { url_mode: urlMode, expected_version: expected },
      }),
    ),
  unpublish: ({ assetId, expected, reason }) =>
    content(
      gateway.POST('/api/platform/unpublish', {
        body: { asset_id: assetId, expected_version: expected, reason: reason || null },
      }),
    ),
  revoke: (said) => content(gateway.POST('/api/platform/revoke', { body: { ...withReason(said), revision: said.revision } })),
  reprocess: (said) => content(gateway.POST('/api/platform/reprocess', { body: withReason(said) })),
  retry: (said) => content(gateway.POST('/api/platform/retry', { body: ofVersion(said) })),
  delete: ({ assetId, expected, ordinal }) =>
    content(
      gateway.DELETE('/api/assets/{asset_id}/versions/{version_ordinal}', {
        params: { path: { asset_id: assetId, version_ordinal: ordinal ?? 0 }, query: { expected_version: expected } },
      }),
    ),
}

function ofVersion({ assetId, expected, ordinal }: Said) {
  return { asset_id: assetId, version_ordinal: ordinal, expected_version: expected }
}

function withReason(said: Said) {
  return { ...ofVersion(said), reason: said.reason }
}
