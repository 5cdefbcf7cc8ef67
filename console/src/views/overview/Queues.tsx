import { Link } from 'react-router'

import type { Queue } from '../../api/model'
import { useQueues } from '../../data/queues'
import { overview } from '../../texts/overview'
import { shared } from '../../texts/shared'
import { Answer } from '../../ui/Answer'
import { count, duration } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Card } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'

const texts = overview.queues

const COLUMNS: Column<Queue>[] = [
  { name: texts.queue, cell: (queue) => <Name queue={queue} /> },
  { name: texts.waiting, cell: (queue) => <Number value={queue.queued} />, isNumber: true },
  { name: texts.delayed, cell: (queue) => <Number value={queue.delayed} />, isNumber: true },
  { name: texts.atWork, cell: (queue) => <Number value={queue.leased} />, isNumber: true },
  { name: texts.dead, cell: (queue) => <Number value={queue.dead} tone="bad" />, isNumber: true },
  { name: texts.oldest, cell: (queue) => <Age seconds={queue.oldest_seconds} />, isNumber: true },
]

/** How deep the queues are. */
export function Queues() {
  return (
    <Card title={<Link to="/operations?tab=queues">{texts.title}</Link>} flush>
      <Answer query={useQueues()}>
        {({ items }) =>
          items.length > 0 ? (
            <Table label={texts.list} columns={COLUMNS} rows={items} rowKey={(queue) => queue.queue} />
          ) : (
            <Empty>{texts.none}</Empty>
          )
        }
      </Answer>
    </Card>
  )
}

function Name({ queue: { queue, workers, queued } }: { queue: Queue }) {
  const isUnmanned = workers === 0 && queued > 0
  return (
    <span title={queue}>
      {queue}
      <span className={isUnmanned ? 'overview-second overview-loud tone-bad' : 'overview-second soft'}>
        {texts.workers(workers)}
      </span>
    </span>
  )
}

/** A number that is soft while there is nothing to see. */
function Number({ value, tone }: { value: number; tone?: 'bad' }) {
  if (value === 0) return <span className="soft">0</span>
  return <strong className={tone && `overview-loud tone-${tone}`}>{count(value)}</strong>
}

/** The largest part of an age is enough here. */
function Age({ seconds }: { seconds: number | null }) {
  if (seconds === null) return <span className="soft">{shared.none}</span>
  return <>{duration(Math.max(0, seconds)).split(' ').slice(0, 2).join(' ')}</>
}
