import { useQuery } from '@tanstack/react-query'

import type { Orchestrating, Worker } from '../../api/model'
import { operations } from '../../texts/operations'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { count } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Card, StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import * as queries from './queries'

const texts = operations.processes

/** The processes that do the work; those that have stopped on demand. */
export function Processes() {
  const [parameters, change] = useAddress()
  const stopped = parameters.get('stopped') === 'true'
  const workers = useQuery(queries.workers(stopped))
  const orchestrators = useQuery(queries.orchestrators(stopped))
  return (
    <>
      <label className="operations-check">
        <input
          type="checkbox"
          checked={stopped}
          onChange={(event) => change({ stopped: event.target.checked ? 'true' : null })}
        />
        {texts.stopped}
      </label>
      <Card title={texts.workers} flush>
        <Answer query={workers}>
          {({ items }) =>
            items.length > 0 ? (
              <Table
                label={texts.workers}
                columns={stopped ? [...WORKERS, STOPPED] : WORKERS}
                rows={items}
                rowKey={({ worker_id: id }) => id}
              />
            ) : (
              <Empty>{texts.noWorkers}</Empty>
            )
          }
        </Answer>
      </Card>
      <Card title={texts.orchestrators} flush>
        <Answer query={orchestrators}>
          {({ items }) =>
            items.length > 0 ? (
              <Table
                label={texts.orchestrators}
                columns={stopped ? [...ORCHESTRATORS, STOPPED] : ORCHESTRATORS}
                rows={items}
                rowKey={({ owner_id: id }) => id}
              />
            ) : (
              <Empty>{texts.noOrchestrators}</Empty>
            )
          }
        </Answer>
      </Card>
    </>
  )
}

type Process = Worker | Orchestrating

/** What is told of every process. */
const STATE: Column<Process> = { name: texts.state, cell: ({ state }) => <StateBadge state={state} /> }
const HEARD: Column<Process> = { name: texts.heard, cell: (process) => <Time at={process.heartbeat_at} /> }
const STARTED: Column<Process> = { name: texts.started, cell: (process) => <Time at={process.started_at} /> }
const VERSION: Column<Process> = { name: texts.version, cell: ({ program_version: version }) => version }
const STOPPED: Column<Process> = { name: texts.stoppedAt, cell: (process) => <Time at={process.stopped_at} /> }

const WORKERS: Column<Worker>[] = [
  { name: texts.process, cell: (worker) => <Name id={worker.worker_id} process={worker} /> },
  STATE,
  {
    name: texts.tasks,
    cell: ({ active_tasks: active, concurrency }) => texts.ofMost(active, concurrency),
    isNumber: true,
  },
  { name: texts.queues, cell: ({ queues }) => queues.join(', ') },
  { name: texts.handlers, cell: (worker) => <Handlers names={worker.handlers ?? []} /> },
  HEARD,
  STARTED,
  VERSION,
]

const ORCHESTRATORS: Column<Orchestrating>[] = [
  { name: texts.process, cell: (process) => <Name id={process.owner_id} process={process} /> },
  STATE,
  { name: texts.jobs, cell: ({ active_jobs: active }) => count(active), isNumber: true },
  HEARD,
  STARTED,
  VERSION,
]

function Name({ id, process }: { id: string; process: Process }) {
  return (
    <>
      <code className="operations-line">{id}</code>
      <span className="operations-below soft">{texts.at(process.hostname, process.process_id)}</span>
    </>
  )
}

function Handlers({ names }: { names: string[] }) {
  if (names.length === 0) return null
  return (
    <details>
      <summary>{texts.handlersOf(names.length)}</summary>
      <code>{names.join(', ')}</code>
    </details>
  )
}
