/** Orchestrators and workers as rows of one list. */

import type { Health } from '../../api/model'
import { overview } from '../../texts/overview'

const texts = overview.processes

const ORDER = ['alive', 'stale', 'gone', 'stopped']

export interface Process {
  id: string
  kind: string
  place: string
  state: string
  holds: string
  heartbeat: string
}

/** Gives those that live first, and of each state the orchestrators before the workers. */
export function processesOf({ orchestrators, workers }: Health): Process[] {
  const rows = [
    ...orchestrators.map((each) => ({
      id: each.owner_id,
      kind: texts.orchestrator,
      place: texts.place(each.hostname, each.program_version),
      state: each.state,
      holds: texts.jobs(each.active_jobs),
      heartbeat: each.heartbeat_at,
    })),
    ...workers.map((each) => ({
      id: each.worker_id,
      kind: texts.worker,
      place: texts.place(each.hostname, each.program_version),
      state: each.state,
      holds: texts.tasks(each.active_tasks, each.concurrency),
      heartbeat: each.heartbeat_at,
    })),
  ]
  return rows.sort((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state))
}
