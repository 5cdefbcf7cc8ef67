/** What the page reads of a job. All of it belongs to the key `['job', id]`, so that events of the job refresh it. */

import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'

import { content, gateway, orchestrator } from '../../api/client'
import type { NodeStatus } from '../../api/model'
import type { CompiledGraph } from '../../graph/definition'
import { useEvery } from '../../live/live'

export function useJob(jobId: string) {
  return useQuery({
    queryKey: ['job', jobId, 'detail'],
    queryFn: () => content(gateway.GET('/api/status/job/{job_id}', { params: { path: { job_id: jobId } } })),
    refetchInterval: useEvery(),
  })
}

const ASK_AGAIN_MS = 5000

/** The graph that the job runs, which never changes: once it is there, it is not asked for again. */
export function useGraph(jobId: string) {
  return useQuery({
    queryKey: ['job', jobId, 'graph'],
    queryFn: () => readGraph(jobId),
    staleTime: 'static',
    refetchInterval: (query) => (query.state.data ? false : ASK_AGAIN_MS),
  })
}

async function readGraph(jobId: string): Promise<CompiledGraph> {
  const params = { path: { job_id: jobId }, query: { format: 'json' as const } }
  return (await content(orchestrator.GET('/api/v1/jobs/{job_id}/graph', { params }))) as unknown as CompiledGraph
}

/** The nodes that stand in the workflow, in graph order. */
export function useNodes(jobId: string) {
  return useQuery({
    queryKey: ['job', jobId, 'nodes'],
    queryFn: async () => {
      const page = await content(gateway.GET('/api/status/job/{job_id}/nodes', { params: { path: { job_id: jobId } } }))
      return page.items
    },
    refetchInterval: useEvery(),
  })
}

export function useNode(jobId: string, nodeId: string) {
  return useQuery({
    queryKey: ['job', jobId, 'node', nodeId],
    queryFn: () => {
      const params = { path: { job_id: jobId, node_id: nodeId } }
      return content(orchestrator.GET('/api/v1/jobs/{job_id}/nodes/{node_id}', { params }))
    },
    refetchInterval: useEvery(),
  })
}

const CHILDREN_AT_ONCE = 100

/** The children of a fan-out, a hundred and then more. */
export function useChildren(jobId: string, parent: string, status: NodeStatus | null) {
  return useInfiniteQuery({
    queryKey: ['job', jobId, 'children', parent, status],
    queryFn: ({ pageParam: cursor }) => {
      const query = { parent, status, limit: CHILDREN_AT_ONCE, cursor }
      return content(gateway.GET('/api/status/job/{job_id}/nodes', { params: { path: { job_id: jobId }, query } }))
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    refetchInterval: useEvery(),
  })
}

export function useTimeline(jobId: string) {
  return useQuery({
    queryKey: ['job', jobId, 'timeline'],
    queryFn: () => content(orchestrator.GET('/api/v1/jobs/{job_id}/timeline', { params: { path: { job_id: jobId } } })),
    refetchInterval: useEvery(),
  })
}
