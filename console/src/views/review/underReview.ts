/** A version that is looked at, and what is in service in its place. */

import { useQuery } from '@tanstack/react-query'

import { content, gateway } from '../../api/client'
import { forStaff, type Asset, type AssetRevision, type AssetVersion, type ValidationReport } from '../../api/model'
import { Problem } from '../../api/problem'
import { readAsset, readVersions } from '../../data/assets'
import { reportOf } from '../../data/report'
import { useEvery } from '../../live/live'
import { review as texts } from '../../texts/review'

/** A revision that is in service. */
export interface InService {
  ordinal: number
  label: string
  revision: number
  contentHash: string | null
  outputHash: string | null
  bbox: number[] | null
  validation: ValidationReport | null
  /** Whether the addresses of the asset lead to it without a version. */
  isLatest: boolean
}

export interface UnderReview {
  asset: Asset
  version: AssetVersion
  /** What this version would take the place of; null when nothing is in service, or this very revision is. */
  inService: InService | null
}

const REVISIONS = 100

/** What is decided on is the revision that was shown. */
export function whichOf({ asset, version }: UnderReview) {
  return { asset_id: asset.asset_id, version_ordinal: version.version_ordinal, revision: version.revision ?? 1 }
}

export function useUnderReview(assetId: string, ordinal: number) {
  return useQuery({
    queryKey: ['asset', assetId, 'review', ordinal],
    queryFn: () => readUnderReview(assetId, ordinal),
    refetchInterval: useEvery(),
  })
}

export async function readUnderReview(assetId: string, ordinal: number): Promise<UnderReview> {
  const asset = await readAsset(assetId)
  const latest = asset.latest_approved_version_ordinal ?? ordinal
  const versions = await readVersions(assetId, Math.min(ordinal, latest))
  const version = versions.find((each) => each.version_ordinal === ordinal)
  if (!version) throw new Problem(404, 'not_found', texts.noVersion(ordinal))
  return { asset, version, inService: await readInService(asset, version, versions) }
}

async function readInService(
  asset: Asset,
  version: AssetVersion,
  versions: AssetVersion[],
): Promise<InService | null> {
  const ordinal = replacedOrdinal(asset, version)
  const served = versions.find((each) => each.version_ordinal === ordinal)
  const revision = served?.approved_revision ?? null
  if (!served || revision === null || isItself(version, served, revision)) return null
  const isLatest = ordinal === asset.latest_approved_version_ordinal
  if (revision === served.revision) return asInService(served, isLatest)
  const kept = await readRevision(asset.asset_id, served.version_ordinal, revision)
  return asInService({ ...served, ...ofRevision(kept), revision, validation: null }, isLatest)
}

/** A version is seen in place of its own older revision where each has an address, else in place of the latest. */
export function replacedOrdinal(asset: Asset, version: AssetVersion): number | null {
  const hasOwnAddress = version.approved_revision !== null && asset.url_mode === 'all_versions'
  return hasOwnAddress ? version.version_ordinal : (asset.latest_approved_version_ordinal ?? null)
}

function isItself(version: AssetVersion, served: AssetVersion, revision: number): boolean {
  return served.version_ordinal === version.version_ordinal && revision === version.revision
}

async function readRevision(assetId: string, ordinal: number, revision: number): Promise<AssetRevision | undefined> {
  const params = { path: { asset_id: assetId }, query: { version_ordinal: ordinal, limit: REVISIONS } }
  const page = forStaff<AssetRevision>(await content(gateway.GET('/api/assets/{asset_id}/revisions', { params })))
  return page.items.find((each) => each.revision === revision)
}

function ofRevision(kept: AssetRevision | undefined) {
  return {
    content_hash: kept?.content_hash ?? null,
    output_hash: kept?.output_hash ?? null,
    bbox: (kept?.outputs?.bbox as number[] | undefined) ?? null,
  }
}

function asInService(version: AssetVersion, isLatest: boolean): InService {
  return {
    ordinal: version.version_ordinal,
    label: version.version_label,
    revision: version.revision ?? 1,
    contentHash: version.content_hash ?? null,
    outputHash: version.output_hash ?? null,
    bbox: version.bbox ?? null,
    validation: reportOf(version),
    isLatest,
  }
}

/** Whether it waits for a decision. */
export function isOpen({ asset, version }: UnderReview): boolean {
  const isThere = !version.deleted_at && !asset.deleted_at
  return isThere && version.processing_state === 'completed' && version.approval_state === 'pending_review'
}
