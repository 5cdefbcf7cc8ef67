/** What became of each try of a node, as the events tell it. */

import type { Event, NodeTimes } from '../../api/model'

export interface Try {
  taskId: string | null
  /** Whether it follows a try that failed: it waits before it is sent. */
  isRetry: boolean
  readyAt: string | null
  dispatchedAt: string | null
  startedAt: string | null
  endedAt: string | null
  outcome: 'completed' | 'failed' | 'skipped' | null
  worker: string | null
  error: string | null
}

const NEW: Try = {
  taskId: null,
  isRetry: false,
  readyAt: null,
  dispatchedAt: null,
  startedAt: null,
  endedAt: null,
  outcome: null,
  worker: null,
  error: null,
}

const OUTCOMES: Partial<Record<Event['event_type'], NonNullable<Try['outcome']>>> = {
  node_completed: 'completed',
  node_failed: 'failed',
  node_skipped: 'skipped',
}

/** Gives the tries of the nodes that are wanted, in their order. */
export function triesOf(events: readonly Event[], isWanted: (nodeId: string) => boolean): Map<string, Try[]> {
  const found = new Map<string, Try[]>()
  const note = (event: Event, nodeId: string) => {
    if (!isWanted(nodeId)) return
    const tries = found.get(nodeId) ?? []
    found.set(nodeId, tries)
    take(tries, event)
  }
  for (const event of events) {
    if (event.node_id && !event.data?.fan_out) note(event, event.node_id)
    for (const nodeId of completedWithJob(event)) note({ ...event, event_type: 'node_completed', data: {} }, nodeId)
  }
  return found
}

/** The start and the end of a graph complete with their job, and have no events of their own. */
function completedWithJob({ data }: Event): string[] {
  return Array.isArray(data?.nodes_completed) ? data.nodes_completed.map(String) : []
}

function take(tries: Try[], { event_type: type, created_at: at, task_id: taskId = null, data = {} }: Event): void {
  const change = (values: Partial<Try>) => Object.assign(underWay(tries), values)
  const worker = typeof data.worker_id === 'string' ? { worker: data.worker_id } : {}
  if (type === 'node_ready') change({ readyAt: at })
  if (type === 'node_retry') change({ readyAt: at, isRetry: true })
  if (type === 'node_dispatched') change({ dispatchedAt: at, taskId })
  if (type === 'node_running') change({ startedAt: at, ...worker, ...(taskId ? { taskId } : {}) })
  const outcome = OUTCOMES[type]
  if (outcome) {
    const error = typeof data.error === 'string' ? data.error : null
    change({ endedAt: at, outcome, error, ...worker, ...(taskId ? { taskId } : {}) })
  }
}

/** Gives the try that goes on; after one that has ended a new one begins. */
function underWay(tries: Try[]): Try {
  const last = tries.at(-1)
  if (last && last.endedAt === null) return last
  const next = { ...NEW }
  tries.push(next)
  return next
}

/** What the row of a node itself tells, where its events were not read. */
export function tryOf(times: NodeTimes): Try {
  const { status, ready_at: readyAt, dispatched_at: dispatchedAt, started_at: startedAt, ended_at: endedAt } = times
  const outcome = status === 'completed' || status === 'failed' || status === 'skipped' ? status : null
  return { ...NEW, isRetry: times.retry_count > 0, readyAt, dispatchedAt, startedAt, endedAt, outcome }
}
