import { memo } from 'react'

import { nodeStatusValues } from '../../api/gateway'
import type { JobDetail, NodeDetail, NodeListItem, NodeStatus } from '../../api/model'
import { Elapsed } from '../../parts/Elapsed'
import { graph as graphTexts } from '../../texts/graph'
import { job as texts } from '../../texts/job'
import { shared } from '../../texts/shared'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { Choice } from '../../ui/Choice'
import { count } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Progress, StateBadge } from '../../ui/parts'
import { Part } from './Part'
import { hasEnded, useChildren } from './queries'

interface Props {
  job: JobDetail
  fanOut: NodeDetail
  onSelect: (nodeId: string) => void
}

/** The children of a fan-out: their sums, and some of them one by one. */
export function Children({ job, fanOut, onSelect }: Props) {
  const [parameters, change] = useAddress()
  const status = nodeStatusValues.find((each) => each === parameters.get('children')) ?? null
  return (
    <Part title={texts.children.title}>
      <Counters fanOut={fanOut} />
      {fanOut.children_total > 0 && (
        <>
          <Choice
            label={texts.children.filter}
            value={status ?? ''}
            any={texts.children.all}
            choices={nodeStatusValues.map((each) => [each, shared.states[each] ?? each] as const)}
            onChange={(children) => change({ children })}
          />
          <List job={job} fanOut={fanOut} status={status} onSelect={onSelect} />
        </>
      )}
    </Part>
  )
}

function Counters({ fanOut }: { fanOut: NodeDetail }) {
  const { children_total: total, children_started: started, children_done: done, children_failed: failed } = fanOut
  const underWay = started - done - failed
  const words = [
    texts.children.counts(count(done), count(total)),
    failed > 0 && texts.children.failed(count(failed)),
    underWay > 0 && texts.children.underWay(count(underWay)),
    total > started && texts.children.waiting(count(total - started)),
  ]
  return (
    <>
      <Progress label={texts.children.progress} total={total} done={done} failed={failed} running={underWay} />
      <p data-testid="children-counts">{words.filter(Boolean).join(', ')}</p>
    </>
  )
}

function List({ job, fanOut, status, onSelect }: Props & { status: NodeStatus | null }) {
  const isOver = hasEnded(fanOut) || !!job.ended_at
  const query = useChildren(job.job_id, fanOut.node_id, status, isOver)
  return (
    <>
      <Answer query={query}>
        {({ pages }) => <Rows rows={pages.flatMap(({ items }) => items)} onSelect={onSelect} />}
      </Answer>
      {query.hasNextPage && (
        <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          {shared.more}
        </Button>
      )}
    </>
  )
}

function Rows({ rows, onSelect }: { rows: NodeListItem[]; onSelect: (nodeId: string) => void }) {
  if (rows.length === 0) return <Empty>{texts.children.none}</Empty>
  return (
    <ul className="job-rows" aria-label={texts.children.list}>
      {rows.map((child) => (
        <Child key={child.node_id} child={child} onSelect={onSelect} />
      ))}
    </ul>
  )
}

const Child = memo(function Child({ child, onSelect }: { child: NodeListItem; onSelect: (nodeId: string) => void }) {
  return (
    <li>
      <button type="button" onClick={() => onSelect(child.node_id)}>
        <span className="job-rows-index">{child.fan_out_index}</span>
        <span className="truncate">{child.fan_out_key ?? texts.children.child(child.fan_out_index ?? 0)}</span>
        <span className="soft">{child.retry_count > 0 && graphTexts.retries(child.retry_count)}</span>
        {child.ended_at && <Elapsed start={child.started_at ?? child.dispatched_at} end={child.ended_at} />}
        <StateBadge state={child.status} />
      </button>
    </li>
  )
})
