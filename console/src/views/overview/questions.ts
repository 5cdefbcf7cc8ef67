/** What the overview asks for: all at once, each answer shared by the cards that need it. */

import { useQuery } from '@tanstack/react-query'

import { content, gateway, orchestrator } from '../../api/client'
import { useEvery } from '../../live/live'

function useAnswer<Data>(name: string, ask: () => Promise<Data>) {
  return useQuery({
    queryKey: ['overview', name],
    queryFn: ask,
    refetchInterval: useEvery(),
  })
}

export const useStatistics = () => useAnswer('statistics', () => content(gateway.GET('/api/status/stats')))

export const useHealth = () => useAnswer('health', () => content(gateway.GET('/api/admin/health')))

export const useFailedVersions = () => useAnswer('failed', () => content(orchestrator.GET('/api/v1/stats/failed')))

export const useStuckVersions = () => useAnswer('stuck', () => content(orchestrator.GET('/api/v1/stats/stuck')))

export const useReviews = () => useAnswer('reviews', () => content(gateway.GET('/api/reviews')))

export const useNewestFailedJob = () =>
  useAnswer('failed-job', () =>
    content(gateway.GET('/api/status/jobs', { params: { query: { status: 'failed', limit: 1 } } })),
  )
