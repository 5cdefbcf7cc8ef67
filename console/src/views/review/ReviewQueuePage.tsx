import './review.css'

import { Link } from 'react-router'

import type { WaitingVersion } from '../../api/model'
import { useDatasetName } from '../../data/names'
import { OutcomeBadge } from '../../parts/Findings'
import { useMay } from '../../session/session'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Answer } from '../../ui/Answer'
import { count } from '../../ui/format'
import { Empty, Notice } from '../../ui/notices'
import { Pager, usePages } from '../../ui/paging'
import { Card, StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { pathOf, useQueue } from './queue'

/** What waits for a decision, the longest waiting first. */
export default function ReviewQueuePage() {
  const mayReview = useMay('review')
  const pages = usePages('')
  const queue = useQueue(pages.cursor)
  const { data } = queue
  return (
    <div className="page">
      <div className="page-head">
        <h1>{texts.title}</h1>
        {data && <span className="soft">{texts.waiting(count(data.items.length), data.next !== null)}</span>}
      </div>
      {!mayReview && <Notice kind="info">{texts.reviewersDecide}</Notice>}
      <Answer query={queue}>
        {({ items, next }) => (
          <Card title={texts.queue} flush className="review-queue">
            {items.length === 0 ? (
              <Empty>{texts.emptyQueue}</Empty>
            ) : (
              <Table label={texts.queue} columns={COLUMNS} rows={items} rowKey={pathOf} />
            )}
            <Pager pages={pages} next={next} words={shared.oldestFirst} />
          </Card>
        )}
      </Answer>
    </div>
  )
}

const COLUMNS: Column<WaitingVersion>[] = [
  { name: texts.columns.what, cell: (row) => <What row={row} /> },
  { name: texts.columns.version, cell: (row) => texts.which(row.version_label, row.version_ordinal, row.revision) },
  { name: texts.columns.type, cell: (row) => shared.dataTypes[row.data_type] ?? row.data_type },
  {
    name: texts.columns.validation,
    cell: (row) => (row.validation ? <OutcomeBadge outcome={row.validation.outcome} /> : shared.none),
  },
  { name: texts.columns.replaces, cell: (row) => replaced(row) },
  { name: texts.columns.since, cell: (row) => <Time at={row.waiting_since} /> },
  { name: texts.columns.partner, cell: (row) => row.platform_id },
  {
    name: texts.columns.requested,
    cell: (row) => (row.clearance_requested ? <StateBadge state={row.clearance_requested} /> : shared.none),
  },
  { name: texts.columns.clearance, cell: (row) => <StateBadge state={row.clearance_state} /> },
]

function What({ row }: { row: WaitingVersion }) {
  const refs = useDatasetName()(row)
  return (
    <>
      <Link to={pathOf(row)}>{row.title ?? refs}</Link>
      {row.title && <span className="soft truncate">{refs}</span>}
    </>
  )
}

function replaced(row: WaitingVersion): string {
  if (row.approved_revision !== null) return texts.replacesRevision(row.approved_revision)
  if (row.latest_approved_version_ordinal !== null) return texts.replacesVersion(row.latest_approved_version_ordinal)
  return texts.replacesNothing
}
