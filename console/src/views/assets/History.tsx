import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import type { Event } from '../../api/model'
import { history } from '../../data/assets'
import { eventWords } from '../../events/words'
import { useEvery } from '../../live/live'
import { JobLink } from '../../parts/JobLink'
import { useMay } from '../../session/session'
import { assets } from '../../texts/assets'
import { shared } from '../../texts/shared'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { dateTime } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Table, type Column } from '../../ui/Table'

const texts = assets.history
const AT_ONCE = 200

/** What happened to an asset, in order, as a story. */
export function History({ assetId }: { assetId: string }) {
  const found = useQuery({ ...history(assetId), refetchInterval: useEvery() })
  return (
    <Answer query={found}>
      {(events) => (events.length > 0 ? <Story events={events} /> : <Empty>{texts.none}</Empty>)}
    </Answer>
  )
}

function Story({ events }: { events: Event[] }) {
  const operates = useMay('operate')
  const [shown, setShown] = useState(AT_ONCE)
  return (
    <>
      <Table
        label={texts.label}
        columns={operates ? [...COLUMNS, JOB] : COLUMNS}
        rows={events.slice(0, shown)}
        rowKey={(event) => String(event.event_id)}
      />
      {events.length > shown && (
        <div className="pager">
          <Button onClick={() => setShown(shown + AT_ONCE)}>{shared.more}</Button>
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
