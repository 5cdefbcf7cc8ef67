/** What several views ask of one asset. All of it belongs to the key `['asset', id]`, so that events refresh it. */

import { queryOptions } from '@tanstack/react-query'

import { content, gateway } from '../api/client'
import { forStaff, type Asset, type AssetVersion, type Event, type Page } from '../api/model'

const VERSIONS_AT_ONCE = 100
const EVENTS_AT_ONCE = 500

export const ofAsset = (assetId: string) => ({ path: { asset_id: assetId } })

export function asset(assetId: string) {
  return queryOptions({ queryKey: ['asset', assetId], queryFn: () => readAsset(assetId) })
}

export async function readAsset(assetId: string): Promise<Asset> {
  return (await content(gateway.GET('/api/assets/{asset_id}', { params: ofAsset(assetId) }))) as Asset
}

/** Reads the versions of an asset down to an ordinal; the newest come first. */
export async function readVersions(assetId: string, downTo: number): Promise<AssetVersion[]> {
  const versions: AssetVersion[] = []
  let cursor: string | undefined
  do {
    const params = { ...ofAsset(assetId), query: { limit: VERSIONS_AT_ONCE, cursor } }
    const page: Page<AssetVersion> = forStaff(
      await content(gateway.GET('/api/assets/{asset_id}/versions', { params })),
    )
    versions.push(...page.items)
    cursor = page.next ?? undefined
  } while (cursor && versions.at(-1)!.version_ordinal > downTo)
  return versions
}

/** How people describe a version; what nobody has described has an empty description. */
export function metadata(assetId: string, ordinal: number) {
  const params = { path: { asset_id: assetId, version_ordinal: ordinal } }
  return queryOptions({
    queryKey: ['asset', assetId, 'metadata', ordinal],
    queryFn: () => content(gateway.GET('/api/assets/{asset_id}/versions/{version_ordinal}/metadata', { params })),
  })
}

interface Told {
  /** Where this page begins. */
  cursor: string | undefined
  items: Event[]
}

/** What happened to an asset, in order. What is past stays as it is: only the last page is read again. */
export function history(assetId: string) {
  const queryKey = ['asset', assetId, 'history']
  return queryOptions({
    queryKey,
    queryFn: ({ client }) => readHistory(assetId, client.getQueryData<Told[]>(queryKey) ?? []),
    select: (pages) => pages.flatMap(({ items }) => items),
  })
}

export async function readHistory(assetId: string, known: Told[]): Promise<Told[]> {
  const pages = known.slice(0, -1)
  let cursor: string | null | undefined = known.at(-1)?.cursor
  do {
    const params = { ...ofAsset(assetId), query: { limit: EVENTS_AT_ONCE, cursor } }
    const page: Page<Event> = forStaff(await content(gateway.GET('/api/assets/{asset_id}/history', { params })))
    pages.push({ cursor, items: page.items })
    cursor = page.next
  } while (cursor)
  return pages
}
