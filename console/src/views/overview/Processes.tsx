import { Link } from 'react-router'

import type { Health } from '../../api/model'
import { overview } from '../../texts/overview'
import { Answer } from '../../ui/Answer'
import { Empty } from '../../ui/notices'
import { Card, StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { processesOf, type Process } from './processRows'
import { useHealth } from './questions'

const texts = overview.processes

const COLUMNS: Column<Process>[] = [
  { name: texts.process, cell: (process) => <Name process={process} /> },
  { name: texts.state, cell: (process) => <StateBadge state={process.state} /> },
  { name: texts.holds, cell: (process) => process.holds, isNumber: true },
  { name: texts.heard, cell: (process) => <Time at={process.heartbeat} />, isNumber: true },
]

/** Which processes there are, and how they are. */
export function Processes() {
  return (
    <Card title={<Link to="/operations?tab=processes">{texts.title}</Link>} flush>
      <Answer query={useHealth()}>
        {(health) => (
          <>
            <Answering health={health} />
            <ProcessTable rows={processesOf(health)} />
          </>
        )}
      </Answer>
    </Card>
  )
}

function ProcessTable({ rows }: { rows: Process[] }) {
  if (rows.length === 0) return <Empty>{texts.none}</Empty>
  return <Table label={texts.list} columns={COLUMNS} rows={rows} rowKey={(process) => process.id} />
}

function Name({ process }: { process: Process }) {
  return (
    <span title={process.id}>
      {process.kind}
      <span className="overview-second soft">{process.place}</span>
    </span>
  )
}

/** The database and what else the gateway reaches: whether each answers, and how fast. */
function Answering({ health }: { health: Health }) {
  return (
    <ul className="overview-answering">
      <Target name={texts.database} ok={health.database.ok} detail={health.database.reason} />
      {Object.entries(health.targets.targets).map(([name, target]) => (
        <Target
          key={name}
          name={name}
          ok={target.ok}
          detail={target.ok ? texts.answered(target.duration_ms) : target.reason}
        />
      ))}
    </ul>
  )
}

function Target({ name, ok, detail }: { name: string; ok: boolean; detail?: string | null }) {
  const state = ok ? texts.answers : texts.silent
  return (
    <li className={`badge tone-${ok ? 'good' : 'bad'}`} title={[state, detail].filter(Boolean).join(': ')}>
      {name}
      <span className={ok ? 'visually-hidden' : undefined}>{state}</span>
    </li>
  )
}
