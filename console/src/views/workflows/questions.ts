/** What the views of workflows ask for. */

import { useQuery } from '@tanstack/react-query'

import { content, gateway } from '../../api/client'
import { untilAnswered } from '../../live/every'
import { useEvery } from '../../live/live'

export const useWorkflow = (workflowId: string) =>
  useQuery({
    queryKey: ['workflows', workflowId],
    queryFn: () =>
      content(gateway.GET('/api/admin/workflows/{workflow_id}', { params: { path: { workflow_id: workflowId } } })),
  })

/** A version that jobs ran: it never changes. */
export const useWorkflowVersion = (workflowId: string, hash: string | null) =>
  useQuery({
    queryKey: ['workflows', workflowId, hash],
    queryFn: () =>
      content(
        gateway.GET('/api/admin/workflows/{workflow_id}/versions/{workflow_hash}', {
          params: { path: { workflow_id: workflowId, workflow_hash: hash ?? '' } },
        }),
      ),
    enabled: hash !== null,
    staleTime: 'static',
    refetchInterval: untilAnswered,
  })

export const useRecentJobs = (workflowId: string, limit: number) =>
  useQuery({
    queryKey: ['jobs', 'recent', workflowId, limit],
    queryFn: () =>
      content(gateway.GET('/api/status/jobs', { params: { query: { workflow_id: workflowId, limit } } })),
    refetchInterval: useEvery(),
  })
