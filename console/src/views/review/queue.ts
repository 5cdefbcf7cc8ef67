/** The versions that wait for a decision. */

import { keepPreviousData, useQuery } from '@tanstack/react-query'

import { content, gateway } from '../../api/client'
import type { WaitingVersion } from '../../api/model'
import { useEvery } from '../../live/live'

const PAGE = 50

/** A page of the queue, the longest waiting first. */
export function useQueue(cursor?: string) {
  return useQuery({
    queryKey: ['reviews', cursor ?? null],
    queryFn: () => content(gateway.GET('/api/reviews', { params: { query: { limit: PAGE, cursor } } })),
    refetchInterval: useEvery(),
    placeholderData: keepPreviousData,
  })
}

export function pathOf({ asset_id: asset, version_ordinal: ordinal }: WaitingVersion): string {
  return `/review/${asset}/${ordinal}`
}

export interface Neighbours {
  previous: WaitingVersion | null
  next: WaitingVersion | null
}

/** Those before and after a version; of one that is not in the queue (any more), the first comes next. */
export function neighbours(queue: readonly WaitingVersion[], assetId: string, ordinal: number): Neighbours {
  const place = queue.findIndex((each) => each.asset_id === assetId && each.version_ordinal === ordinal)
  return { previous: queue[place - 1] ?? null, next: queue[place + 1] ?? null }
}
