/** What is asked for the operations. */

import { keepPreviousData, queryOptions } from '@tanstack/react-query'

import { content, orchestrator } from '../../api/client'

/** No event tells of processes, so they are asked for again and again. */
const PROCESSES_MS = 5000
const TABLES_MS = 30_000

export type Kind = 'task' | 'job'

/** Dead letters are a part of the queues: what happens to jobs may change both. */
export function letters(kind: Kind | undefined, queue: string | undefined, cursor: string | undefined) {
  return queryOptions({
    queryKey: ['queues', 'dead letters', kind, queue, cursor],
    queryFn: () => content(orchestrator.GET('/api/v1/dead-letters', { params: { query: { kind, queue, cursor } } })),
    placeholderData: keepPreviousData,
  })
}

export function workers(stopped: boolean) {
  return queryOptions({
    queryKey: ['processes', 'workers', stopped],
    queryFn: () => content(orchestrator.GET('/api/v1/workers', { params: { query: { stopped } } })),
    placeholderData: keepPreviousData,
    refetchInterval: PROCESSES_MS,
  })
}

export function orchestrators(stopped: boolean) {
  return queryOptions({
    queryKey: ['processes', 'orchestrators', stopped],
    queryFn: () => content(orchestrator.GET('/api/v1/orchestrators', { params: { query: { stopped } } })),
    placeholderData: keepPreviousData,
    refetchInterval: PROCESSES_MS,
  })
}

export function clients() {
  return queryOptions({
    queryKey: ['clients'],
    queryFn: () => content(orchestrator.GET('/api/v1/clients')),
    refetchInterval: TABLES_MS,
  })
}

export function schemaStatus() {
  return queryOptions({
    queryKey: ['schema', 'status'],
    queryFn: () => content(orchestrator.GET('/api/v1/bootstrap/status')),
    staleTime: TABLES_MS,
  })
}

export function tables() {
  return queryOptions({
    queryKey: ['schema', 'tables'],
    queryFn: () => content(orchestrator.GET('/api/v1/bootstrap/tables')),
    refetchInterval: TABLES_MS,
  })
}
