import { useMemo } from 'react'

import type { Attempt, NodeDetail } from '../../api/model'
import { job as texts } from '../../texts/job'
import { shared } from '../../texts/shared'
import { Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { useEventLog } from './JobEvents'
import { Part } from './Part'
import { triesOf, type Try } from './tries'

interface Row extends Attempt {
  /** What the events tell of it: who had it, and how it ended. */
  told: Try | undefined
  worker: string | null
}

/** Each try of a node. Its queue forgets who had a task once it is done; the events remember. */
export function Attempts({ node }: { node: NodeDetail }) {
  const { events } = useEventLog()
  const rows = useMemo(() => {
    const told = triesOf(events, (id) => id === node.node_id)
    return rowsOf(node, told.get(node.node_id) ?? [])
  }, [node, events])
  return (
    <Part title={texts.attempts}>
      <Table label={texts.attempts} columns={COLUMNS} rows={rows} rowKey={(row) => row.task_id} />
    </Part>
  )
}

function rowsOf(node: NodeDetail, tries: Try[]): Row[] {
  const byTask = new Map(tries.map((each) => [each.taskId, each]))
  return node.attempts.map((attempt) => {
    const told = byTask.get(attempt.task_id)
    const worker = attempt.leased_by ?? told?.worker ?? (attempt.task_id === node.task_id ? node.worker_id : null)
    return { ...attempt, told, worker: worker ?? null }
  })
}

const COLUMNS: Column<Row>[] = [
  { name: texts.attempt.number, cell: (row) => row.retry_count + 1, isNumber: true },
  { name: texts.attempt.state, cell: stateOf },
  { name: texts.attempt.error, cell: (row) => row.dead_reason ?? row.told?.error ?? shared.none },
  { name: texts.attempt.worker, cell: (row) => <span className="mono">{row.worker ?? shared.none}</span> },
  { name: texts.attempt.deliveries, cell: (row) => row.delivery_count, isNumber: true },
  { name: texts.attempt.began, cell: (row) => <Time at={row.created_at} /> },
  { name: texts.attempt.queue, cell: (row) => <span className="mono">{row.queue}</span> },
]

function stateOf({ status, told }: Row): string {
  const outcome = status === 'done' ? told?.outcome : null
  return outcome ? (shared.states[outcome] ?? outcome) : texts.messageStates[status]
}
