/** What is asked of the gateway for assets. */

import { keepPreviousData, queryOptions } from '@tanstack/react-query'

import { content, gateway } from '../../api/client'
import { forStaff, type Asset, type AssetRevision, type AssetVersion, type PlatformRequest } from '../../api/model'
import { ofAsset, readVersions } from '../../data/assets'
import type { AssetQuery } from './filters'

const MOST = 500

export function listed(query: AssetQuery, cursor: string | undefined) {
  return queryOptions({
    queryKey: ['assets', query, cursor],
    queryFn: async () =>
      forStaff<Asset>(await content(gateway.GET('/api/assets', { params: { query: { ...query, cursor } } }))),
    placeholderData: keepPreviousData,
  })
}

export function versions(assetId: string, cursor: string | undefined) {
  return queryOptions({
    queryKey: ['asset', assetId, 'versions', cursor],
    queryFn: async () =>
      forStaff<AssetVersion>(
        await content(
          gateway.GET('/api/assets/{asset_id}/versions', { params: { ...ofAsset(assetId), query: { cursor } } }),
        ),
      ),
    placeholderData: keepPreviousData,
  })
}

/** The latest version in service: a clearance is about the revision of it that is. */
export function latestInService(asset: Asset) {
  const latest = asset.latest_approved_version_ordinal ?? 0
  return queryOptions({
    queryKey: ['asset', asset.asset_id, 'latest', latest],
    queryFn: async () => {
      const found = await readVersions(asset.asset_id, latest)
      return found.find((version) => version.version_ordinal === latest) ?? null
    },
  })
}

export function revisions(assetId: string, cursor: string | undefined, limit?: number) {
  return queryOptions({
    queryKey: ['asset', assetId, 'revisions', cursor, limit],
    queryFn: async () =>
      forStaff<AssetRevision>(
        await content(
          gateway.GET('/api/assets/{asset_id}/revisions', {
            params: { ...ofAsset(assetId), query: { cursor, limit } },
          }),
        ),
      ),
    placeholderData: keepPreviousData,
  })
}

export function services(assetId: string) {
  return queryOptions({
    queryKey: ['asset', assetId, 'services'],
    queryFn: () =>
      content(
        gateway.GET('/api/assets/{asset_id}/services', { params: { ...ofAsset(assetId), query: { limit: MOST } } }),
      ),
  })
}

export function requests(assetId: string) {
  return queryOptions({
    queryKey: ['asset', assetId, 'requests'],
    queryFn: async () =>
      forStaff<PlatformRequest>(
        await content(gateway.GET('/api/platform/requests', { params: { query: { asset_id: assetId, limit: MOST } } })),
      ),
  })
}

/** The jobs of an asset, newest first; operators only. */
export function jobs(assetId: string, isAllowed: boolean) {
  return queryOptions({
    queryKey: ['asset', assetId, 'jobs'],
    queryFn: () => content(gateway.GET('/api/status/lookup', { params: { query: { asset_id: assetId } } })),
    enabled: isAllowed,
  })
}

/** The nodes of a job without the children of its fan-outs. */
export function nodes(jobId: string) {
  return queryOptions({
    queryKey: ['job', jobId, 'nodes', 'of lineage'],
    queryFn: () =>
      content(
        gateway.GET('/api/status/job/{job_id}/nodes', { params: { path: { job_id: jobId }, query: { limit: MOST } } }),
      ),
  })
}
