import { Link } from 'react-router'

import type { Queue } from '../../api/model'
import { useQueues } from '../../data/queues'
import { operations } from '../../texts/operations'
import { shared } from '../../texts/shared'
import { Answer } from '../../ui/Answer'
import { count, duration } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Card } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'

const texts = operations.queues

const COLUMNS: Column<Queue>[] = [
  { name: texts.queue, cell: ({ queue }) => queue },
  { name: texts.queued, cell: ({ queued }) => count(queued), isNumber: true },
  { name: texts.delayed, cell: ({ delayed }) => count(delayed), isNumber: true },
  { name: texts.leased, cell: ({ leased }) => count(leased), isNumber: true },
  { name: texts.oldest, cell: (queue) => <Oldest queue={queue} />, isNumber: true },
  { name: texts.dead, cell: (queue) => <Dead queue={queue} />, isNumber: true },
  { name: texts.workers, cell: ({ workers }) => count(workers), isNumber: true },
]

export function Queues() {
  return (
    <Card title={texts.label} flush>
      <Answer query={useQueues()}>
        {({ items }) =>
          items.length > 0 ? (
            <Table label={texts.label} columns={COLUMNS} rows={items} rowKey={({ queue }) => queue} />
          ) : (
            <Empty>{texts.none}</Empty>
          )
        }
      </Answer>
    </Card>
  )
}

function Oldest({ queue: { oldest_seconds: seconds } }: { queue: Queue }) {
  return seconds === null ? shared.none : duration(Math.max(0, seconds))
}

function Dead({ queue: { dead, queue } }: { queue: Queue }) {
  if (dead === 0) return count(dead)
  const search = new URLSearchParams({ tab: 'dead-letters', queue })
  return (
    <Link to={`/operations?${search}`} aria-label={texts.seeDead(dead, queue)}>
      {count(dead)}
    </Link>
  )
}
