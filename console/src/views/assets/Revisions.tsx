import { useQuery } from '@tanstack/react-query'

import type { AssetRevision } from '../../api/model'
import { useEvery } from '../../live/live'
import { Hash } from '../../parts/Hash'
import { JobLink } from '../../parts/JobLink'
import { useMay } from '../../session/session'
import { assets } from '../../texts/assets'
import { Answer } from '../../ui/Answer'
import { Empty } from '../../ui/notices'
import { Pager, usePages } from '../../ui/paging'
import { StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { outputsOf } from './outputs'
import * as queries from './queries'

const texts = assets.revisions

/** What versions were before they were processed anew. */
export function Revisions({ assetId }: { assetId: string }) {
  const operates = useMay('operate')
  const pages = usePages(`revisions ${assetId}`)
  const found = useQuery({ ...queries.revisions(assetId, pages.cursor), refetchInterval: useEvery() })
  const shown = operates ? [...COLUMNS, JOB] : COLUMNS
  return (
    <Answer query={found}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{texts.none}</Empty>}
          {items.length > 0 && (
            <Table
              label={texts.label}
              columns={shown}
              rows={items}
              rowKey={(each) => `${each.version_ordinal}.${each.revision}`}
            />
          )}
          <Pager pages={pages} next={next} />
        </>
      )}
    </Answer>
  )
}

const COLUMNS: Column<AssetRevision>[] = [
  { name: texts.version, cell: (each) => each.version_ordinal, isNumber: true },
  { name: texts.revision, cell: (each) => each.revision, isNumber: true },
  { name: texts.approval, cell: (each) => <StateBadge state={each.approval_state} /> },
  { name: texts.clearance, cell: (each) => <StateBadge state={each.clearance_state} /> },
  { name: texts.reviewer, cell: (each) => each.reviewer },
  { name: texts.hashes, cell: (each) => <Hash hash={each.output_hash} of={assets.details.outputHash} /> },
  { name: texts.outputs, cell: (each) => <Outputs revision={each} /> },
  { name: texts.created, cell: (each) => <Time at={each.created_at} /> },
  { name: texts.superseded, cell: (each) => <Time at={each.superseded_at} /> },
]

const JOB: Column<AssetRevision> = {
  name: texts.job,
  cell: ({ job_id: jobId }) => jobId && <JobLink jobId={jobId} />,
}

function Outputs({ revision }: { revision: AssetRevision }) {
  return outputsOf(revision.outputs ?? {}).map(({ name, value }) => (
    <div key={name} className="assets-output">
      <span className="soft">{name}</span> <code>{value}</code>
    </div>
  ))
}
