/** How a version stands, and what may be done with it. */

import type { Asset, AssetVersion } from '../../api/model'
import type { Deed } from '../../session/session'

/** The state of approval as people speak of it. */
export function approvalOf(version: AssetVersion): string {
  if (version.deleted_at) return 'deleted'
  return version.revoked_at ? 'revoked' : version.approval_state
}

export function isWaiting(asset: Asset, version: AssetVersion): boolean {
  const isProcessed = version.processing_state === 'completed' && version.approval_state === 'pending_review'
  return isProcessed && isLive(asset, version)
}

function isLive(asset: Asset, version: AssetVersion): boolean {
  return !asset.deleted_at && !version.deleted_at
}

/** What can be asked of an asset, and of one version of it. */
type AssetAction = 'clearance' | 'urlMode' | 'unpublish'
export type VersionAction = 'retry' | 'reprocess' | 'revoke' | 'delete'
export type Action = AssetAction | VersionAction

/** Who may ask for it. */
export const DEEDS: Record<Action, Deed> = {
  clearance: 'review',
  urlMode: 'review',
  unpublish: 'remove',
  retry: 'submit',
  reprocess: 'operate',
  revoke: 'review',
  delete: 'remove',
}

/** What an asset suits; who may do it is another question. */
export function assetActions(asset: Asset): AssetAction[] {
  if (asset.deleted_at) return []
  const isInService = typeof asset.latest_approved_version_ordinal === 'number'
  return isInService ? ['clearance', 'urlMode', 'unpublish'] : ['urlMode', 'unpublish']
}

/** What a version suits; who may do it is another question. */
export function versionActions(asset: Asset, version: AssetVersion): VersionAction[] {
  if (!isLive(asset, version)) return []
  const { processing_state: processing } = version
  const isInService = typeof version.approved_revision === 'number'
  const suits: [VersionAction, boolean][] = [
    ['retry', processing === 'failed'],
    ['reprocess', processing === 'failed' || processing === 'completed'],
    ['revoke', isInService],
    ['delete', true],
  ]
  return suits.filter(([, fits]) => fits).map(([action]) => action)
}
