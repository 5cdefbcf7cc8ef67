import { useState } from 'react'

import { job as texts } from '../../texts/job'
import { shared } from '../../texts/shared'
import { between, duration } from '../../ui/format'
import { Table, type Column } from '../../ui/Table'
import { clock } from './clock'
import type { Row } from './timeline'
import type { Try } from './tries'

interface Line extends Try {
  nodeId: string
  number: number
  state: string
}

/** The timeline for those who do not see the bars, or want the numbers. */
export function TimelineTable({ rows }: { rows: Row[] }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="card job-timeline-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{texts.timeline.asTable}</summary>
      {isOpen && (
        <Table
          label={texts.timeline.label}
          columns={COLUMNS}
          rows={rows.flatMap(linesOf)}
          rowKey={(line) => `${line.nodeId} ${line.number}`}
        />
      )}
    </details>
  )
}

function linesOf({ times, tries }: Row): Line[] {
  return tries.map((each, index) => ({
    ...each,
    nodeId: times.node_id,
    number: index + 1,
    state: each.outcome ?? times.status,
  }))
}

function at(value: string | null): string {
  return value ? clock(value) : shared.none
}

function length(start: string | null, end: string | null): string {
  const seconds = start && end ? between(start, end) : null
  return seconds === null ? shared.none : duration(seconds)
}

const { columns } = texts.timeline
const COLUMNS: Column<Line>[] = [
  { name: columns.node, cell: (line) => <span className="mono">{line.nodeId}</span> },
  { name: columns.try, cell: (line) => line.number, isNumber: true },
  { name: columns.state, cell: (line) => shared.states[line.state] },
  { name: columns.ready, cell: (line) => at(line.readyAt) },
  { name: columns.dispatched, cell: (line) => at(line.dispatchedAt) },
  { name: columns.started, cell: (line) => at(line.startedAt) },
  { name: columns.ended, cell: (line) => at(line.endedAt) },
  { name: columns.waited, cell: (line) => length(line.readyAt ?? line.dispatchedAt, line.startedAt), isNumber: true },
  { name: columns.ran, cell: (line) => length(line.startedAt ?? line.dispatchedAt, line.endedAt), isNumber: true },
]
