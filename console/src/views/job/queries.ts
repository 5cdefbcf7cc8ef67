/** What the page reads of a job. What has the key `['job', id]` is refreshed by events of the job. */

import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'

import { content, gateway, orchestrator } from '../../api/client'
import type { Event, JobDetail, NodeDetail, NodeStatus, Page } from '../../api/model'
import { Problem } from '../../api/problem'
import type { CompiledGraph } from '../../graph/definition'
import { untilAnswered } from '../../live/every'
import { useEvery } from '../../live/live'

/** An id that nothing can have is as unknown as one that nothing has. */
export function isUnknown(error: unknown): boolean {
  return error instanceof Problem && (error.status === 404 || error.status === 422)
}

export function useJob(jobId: string) {
  const every = useEvery()
  return useQuery({
    queryKey: ['job', jobId, 'detail'],
    queryFn: () => content(gateway.GET('/api/status/job/{job_id}', { params: { path: { job_id: jobId } } })),
    refetchInterval: (query) => (query.state.status === 'error' || !isOverForGood(query.state.data)) && every(query),
  })
}

/** Only a job that failed can be resumed; the others stay as they ended, and their result may be large. */
function isOverForGood(job: JobDetail | undefined): boolean {
  return job?.status === 'completed' || job?.status === 'cancelled'
}

/** The graph that the job runs, which never changes: once it is there, it is not asked for again. */
export function useGraph(jobId: string) {
  return useQuery({
    queryKey: ['job', jobId, 'graph'],
    queryFn: () => readGraph(jobId),
    staleTime: 'static',
    refetchInterval: untilAnswered,
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

/**
 * One node. What it gave may be large, so that once it has ended it is not read again until the job ends or is resumed:
 * its key is another then. What was read before is forgotten, because the key of a job that runs again is the same.
 */
export function useNode(job: JobDetail, nodeId: string) {
  const every = useEvery()
  return useQuery({
    queryKey: ['job', job.job_id, 'node', nodeId, job.ended_at ?? null],
    queryFn: () => {
      const params = { path: { job_id: job.job_id, node_id: nodeId } }
      return content(orchestrator.GET('/api/v1/jobs/{job_id}/nodes/{node_id}', { params }))
    },
    placeholderData: keepPreviousData,
    gcTime: 0,
    staleTime: ({ state: { data } }) => (hasEnded(data) ? 'static' : 0),
    refetchInterval: (query) => !hasEnded(query.state.data) && every(query),
  })
}

export function hasEnded(node: NodeDetail | undefined): boolean {
  return node?.status === 'completed' || node?.status === 'failed' || node?.status === 'skipped'
}

const CHILDREN_AT_ONCE = 100
const CHILDREN_EVERY_MS = 5000

/**
 * The children of a fan-out, a hundred and then more. Every event of the job may change some of them, and all pages are
 * read again: so it is not for events to say when, and the more pages there are, the longer they stay.
 */
export function useChildren(jobId: string, parent: string, status: NodeStatus | null, isOver: boolean) {
  const children = useInfiniteQuery({
    queryKey: ['children', jobId, parent, status],
    queryFn: ({ pageParam: cursor }) => {
      const query = { parent, status, limit: CHILDREN_AT_ONCE, cursor }
      return content(gateway.GET('/api/status/job/{job_id}/nodes', { params: { path: { job_id: jobId }, query } }))
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state: { data, status: answer } }) =>
      (answer === 'error' || !isOver) && CHILDREN_EVERY_MS * (data?.pages.length ?? 1),
  })
  useOnceMore(isOver, children.refetch)
  return children
}

/** Reads once more when something has ended or begun again. */
function useOnceMore(isOver: boolean, refetch: () => Promise<unknown>) {
  const wasOver = useRef(isOver)
  useEffect(() => {
    if (wasOver.current === isOver) return
    wasOver.current = isOver
    void refetch()
  }, [isOver, refetch])
}

const EVENTS_AT_ONCE = 500
const MOST_PAGES = 10

/** How tasks failed, by their ids; what was told of those that are over does not change any more. */
export function useFailures(jobId: string, taskIds: readonly string[]) {
  return useQuery({
    queryKey: ['job', jobId, 'failures', ...taskIds],
    queryFn: () => readFailures(jobId, new Set(taskIds)),
    enabled: taskIds.length > 0,
    staleTime: 'static',
    placeholderData: keepPreviousData,
  })
}

async function readFailures(jobId: string, wanted: ReadonlySet<string>): Promise<Map<string, Event>> {
  const found = new Map<string, Event>()
  let cursor: string | null = null
  for (let page = 0; page < MOST_PAGES && found.size < wanted.size; page += 1) {
    const { items, next } = await readEvents(jobId, cursor, ['node_failed'])
    for (const event of items) {
      if (event.task_id && wanted.has(event.task_id)) found.set(event.task_id, event)
    }
    if (next === null) break
    cursor = next
  }
  return found
}

/** A page of the log of a job; with types, only events of these. */
export async function readEvents(
  jobId: string,
  cursor: string | null,
  types?: Event['event_type'][],
): Promise<Page<Event>> {
  const params = { path: { job_id: jobId }, query: { limit: EVENTS_AT_ONCE, cursor, event_type: types } }
  const { items, next } = await content(gateway.GET('/api/status/job/{job_id}/events', { params }))
  return { items, next: next ?? null }
}

export function useTimeline(jobId: string) {
  return useQuery({
    queryKey: ['job', jobId, 'timeline'],
    queryFn: () => content(orchestrator.GET('/api/v1/jobs/{job_id}/timeline', { params: { path: { job_id: jobId } } })),
    refetchInterval: useEvery(),
  })
}
