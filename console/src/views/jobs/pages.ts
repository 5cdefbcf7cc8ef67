/** Pages of jobs, as they are asked for. */

import { queryOptions } from '@tanstack/react-query'

import { content, gateway } from '../../api/client'
import type { JobQuery } from './filters'

export function pageOfJobs(query: JobQuery, cursor: string | undefined) {
  return queryOptions({
    queryKey: ['jobs', query, cursor],
    queryFn: () => content(gateway.GET('/api/status/jobs', { params: { query: { ...query, cursor } } })),
  })
}
