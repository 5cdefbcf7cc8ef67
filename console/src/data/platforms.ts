/** The registry of partners, as all views ask for it. */

import { queryOptions } from '@tanstack/react-query'

import { content, gateway } from '../api/client'

/** All partners, those too that take no new submissions. */
export function platforms() {
  return queryOptions({
    queryKey: ['platforms'],
    queryFn: () => content(gateway.GET('/api/platforms', { params: { query: { inactive: true } } })),
    staleTime: 60_000,
  })
}
