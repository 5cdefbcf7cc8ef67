import type { Attempt, Event, NodeDetail } from '../../api/model'
import { job as texts } from '../../texts/job'
import { shared } from '../../texts/shared'
import { ProblemNotice } from '../../ui/notices'
import { Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { Part } from './Part'
import { hasEnded, useFailures } from './queries'

interface Row extends Attempt {
  outcome: string | null
  error: string | null
  worker: string | null
}

/** Each try of a node. Its queue forgets who had a task once it is done; the node and the events remember. */
export function Attempts({ node }: { node: NodeDetail }) {
  const earlier = node.attempts.map(({ task_id }) => task_id).filter((task) => task !== node.task_id)
  const { data: failures, error, refetch } = useFailures(node.job_id, earlier)
  return (
    <Part title={texts.attempts}>
      {error && <ProblemNotice error={error} onRetry={() => void refetch()} />}
      <Table
        label={texts.attempts}
        columns={COLUMNS}
        rows={node.attempts.map((attempt) => rowOf(attempt, node, failures?.get(attempt.task_id)))}
        rowKey={(row) => row.task_id}
      />
    </Part>
  )
}

function rowOf(attempt: Attempt, node: NodeDetail, failure: Event | undefined): Row {
  const told = attempt.task_id === node.task_id ? toldByNode(node) : toldBy(failure)
  return {
    ...attempt,
    outcome: attempt.status === 'done' ? told.outcome : null,
    error: attempt.dead_reason ?? told.error,
    worker: attempt.leased_by ?? told.worker,
  }
}

type Told = Pick<Row, 'outcome' | 'error' | 'worker'>

/** Of its last task the node itself tells. */
function toldByNode(node: NodeDetail): Told {
  return {
    outcome: hasEnded(node) ? node.status : null,
    error: node.status === 'failed' ? (node.error_message ?? null) : null,
    worker: node.worker_id ?? null,
  }
}

function toldBy(failure: Event | undefined): Told {
  const text = (value: unknown) => (typeof value === 'string' ? value : null)
  const { error, worker_id: worker } = failure?.data ?? {}
  return { outcome: failure ? 'failed' : null, error: text(error), worker: text(worker) }
}

const COLUMNS: Column<Row>[] = [
  { name: texts.attempt.number, cell: (row) => row.retry_count + 1, isNumber: true },
  { name: texts.attempt.state, cell: stateOf },
  { name: texts.attempt.error, cell: (row) => row.error ?? shared.none },
  { name: texts.attempt.worker, cell: (row) => <span className="mono">{row.worker ?? shared.none}</span> },
  { name: texts.attempt.deliveries, cell: (row) => row.delivery_count, isNumber: true },
  { name: texts.attempt.began, cell: (row) => <Time at={row.created_at} /> },
  { name: texts.attempt.queue, cell: (row) => <span className="mono">{row.queue}</span> },
]

function stateOf({ status, outcome }: Row): string {
  return outcome ? (shared.states[outcome] ?? outcome) : texts.messageStates[status]
}
