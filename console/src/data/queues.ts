/** The queues with their depths; what happens to any job may change them. */

import { useQuery } from '@tanstack/react-query'

import { content, orchestrator } from '../api/client'
import { useEvery } from '../live/live'

export const useQueues = () =>
  useQuery({
    queryKey: ['queues', 'all'],
    queryFn: () => content(orchestrator.GET('/api/v1/queues')),
    refetchInterval: useEvery(),
  })
