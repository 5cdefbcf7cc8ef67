/** How assets are called on a page. */

import type { Asset, Platform } from '../../api/model'

type Refs = Asset['platform_refs']

/** The partner's own references, those first that identify a dataset. The database keeps them in no order of theirs. */
export function orderedRefs(refs: Refs, partner?: Platform): [string, string][] {
  const order = [...(partner?.required_refs ?? []), ...(partner?.optional_refs ?? [])]
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length)
  return Object.entries(refs)
    .toSorted(([one], [other]) => place(one) - place(other))
    .map(([name, value]) => [name, String(value)])
}

/** The references as one name: `island / relief`. */
export function assetName(asset: Asset, partner?: Platform): string {
  return orderedRefs(asset.platform_refs, partner)
    .map(([, value]) => value)
    .join(' / ')
}

export function partnerOf(asset: Asset, platforms: Platform[] | undefined): Platform | undefined {
  return platforms?.find(({ platform_id }) => platform_id === asset.platform_id)
}

/** A box in degrees with as many places as a person reads. */
export function boxText(bbox: readonly number[]): string {
  return bbox.map((value) => value.toFixed(2)).join(', ')
}
