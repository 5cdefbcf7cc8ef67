/** The workflows that can be submitted. */

import { useQuery } from '@tanstack/react-query'

import { content, gateway } from '../api/client'

/** Files change rarely. */
const FRESH_MS = 30_000

export const useWorkflows = () =>
  useQuery({
    queryKey: ['workflows'],
    queryFn: () => content(gateway.GET('/api/admin/workflows')),
    staleTime: FRESH_MS,
  })
