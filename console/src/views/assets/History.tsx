import { useInfiniteQuery } from '@tanstack/react-query'

import type { Event } from '../../api/model'
import { eventWords } from '../../events/words'
import { useEvery } from '../../live/live'
import { useMay } from '../../session/session'
import { assets } from '../../texts/assets'
import { shared } from '../../texts/shared'
import { Button } from '../../ui/Button'
import { dateTime } from '../../ui/format'
import { Empty, Loading, ProblemNotice } from '../../ui/notices'
import { Table, type Column } from '../../ui/Table'
import { JobLink } from './JobLink'
import * as queries from './queries'

const texts = assets.history

/** What happened to an asset, in order, as a story. */
export function History({ assetId }: { assetId: string }) {
  const operates = useMay('operate')
  const found = useInfiniteQuery({ ...queries.history(assetId), refetchInterval: useEvery() })
  if (found.error && !found.data) return <ProblemNotice error={found.error} onRetry={() => void found.refetch()} />
  if (!found.data) return <Loading />
  const events = found.data.pages.flatMap((page) => page.items)
  if (events.length === 0) return <Empty>{texts.none}</Empty>
  return (
    <>
      <Table
        label={texts.label}
        columns={operates ? [...COLUMNS, JOB] : COLUMNS}
        rows={events}
        rowKey={(event) => String(event.event_id)}
      />
      {found.hasNextPage && (
        <div className="pager">
          <Button busy={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            {shared.more}
          </Button>
        </div>
      )}
    </>
  )
}

const COLUMNS: Column<Event>[] = [
  { name: texts.when, cell: (event) => <time dateTime={event.created_at}>{dateTime(event.created_at)}</time> },
  { name: texts.what, cell: (event) => <span className="assets-what">{eventWords(event)}</span> },
  { name: texts.who, cell: (event) => event.actor },
]

const JOB: Column<Event> = {
  name: texts.job,
  cell: ({ job_id: jobId }) => jobId && <JobLink jobId={jobId} />,
}
