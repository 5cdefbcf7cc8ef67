/** How the request behind a version stands, as its partner reads it. */

import { useQuery } from '@tanstack/react-query'

import { content, gateway } from '../api/client'
import { useEvery } from '../live/live'

export function useRequestStatus(requestId: string | null | undefined) {
  return useQuery({
    queryKey: ['request', requestId],
    queryFn: () => content(gateway.GET('/api/platform/status/{key}', { params: { path: { key: requestId ?? '' } } })),
    enabled: Boolean(requestId),
    refetchInterval: useEvery(),
  })
}
