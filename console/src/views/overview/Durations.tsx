import { Link } from 'react-router'

import type { Statistics } from '../../api/model'
import { overview } from '../../texts/overview'
import { Answer } from '../../ui/Answer'
import { count, duration } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Card } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { useStatistics } from './questions'

const texts = overview.durations

type Row = Statistics['durations_7d'][number]

/** How long the jobs of each workflow take: half of them no longer than p50, nearly all no longer than p95. */
export function Durations() {
  return (
    <Card title={texts.title} flush>
      <Answer query={useStatistics()}>
        {({ durations_7d }) =>
          durations_7d.length > 0 ? <DurationTable rows={durations_7d} /> : <Empty>{texts.none}</Empty>
        }
      </Answer>
    </Card>
  )
}

function DurationTable({ rows }: { rows: Row[] }) {
  const longest = Math.max(...rows.map((row) => row.p95_seconds))
  const columns: Column<Row>[] = [
    { name: texts.workflow, cell: (row) => <Workflow row={row} longest={longest} /> },
    { name: texts.jobs, cell: (row) => count(row.jobs), isNumber: true },
    { name: texts.median, cell: (row) => duration(row.p50_seconds), isNumber: true },
    { name: texts.most, cell: (row) => duration(row.p95_seconds), isNumber: true },
  ]
  const slowestFirst = rows.toSorted((one, other) => other.p95_seconds - one.p95_seconds)
  return <Table label={texts.list} columns={columns} rows={slowestFirst} rowKey={(row) => row.workflow_id} />
}

/** The name, and below it both durations as a bar beside the longest of all. */
function Workflow({ row, longest }: { row: Row; longest: number }) {
  const part = (seconds: number) => ({ width: `${longest > 0 ? (100 * seconds) / longest : 0}%` })
  return (
    <>
      <Link className="truncate" to={`/workflows/${encodeURIComponent(row.workflow_id)}`} title={row.workflow_id}>
        {row.workflow_id}
      </Link>
      <span className="overview-spread" aria-hidden="true">
        <span className="most" style={part(row.p95_seconds)} />
        <span className="median" style={part(row.p50_seconds)} />
      </span>
    </>
  )
}
