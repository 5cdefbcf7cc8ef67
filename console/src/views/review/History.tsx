import { useQuery } from '@tanstack/react-query'

import { content, gateway } from '../../api/client'
import { forStaff, type Event, type Page } from '../../api/model'
import { eventWords } from '../../events/words'
import { useEvery } from '../../live/live'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Loading, ProblemNotice } from '../../ui/notices'
import { Card, Time } from '../../ui/parts'

const PAGE = 500

/** What happened to the asset, the newest first. */
export function History({ assetId, ordinal }: { assetId: string; ordinal: number }) {
  const { data, error } = useQuery({
    queryKey: ['asset', assetId, 'review', 'history'],
    queryFn: () => readHistory(assetId),
    refetchInterval: useEvery(),
  })
  return (
    <Card title={texts.history}>
      {error ? <ProblemNotice error={error} /> : !data && <Loading />}
      <div className="review-scroll" tabIndex={0} role="region" aria-label={shared.scrollable(texts.history)}>
        <ol className="review-history">
          {data?.map((event) => (
            <li key={event.event_id} className={event.version_ordinal === ordinal ? 'of-this' : undefined}>
              <Happened event={event} />
            </li>
          ))}
        </ol>
      </div>
    </Card>
  )
}

function Happened({ event }: { event: Event }) {
  return (
    <>
      <span>{eventWords(event)}</span>
      <span className="soft">
        {event.actor} · <Time at={event.created_at} />
      </span>
    </>
  )
}

/** The API tells it in order, in pages; the newest is what is read first. */
async function readHistory(assetId: string): Promise<Event[]> {
  const events: Event[] = []
  let cursor: string | undefined
  do {
    const params = { path: { asset_id: assetId }, query: { limit: PAGE, cursor } }
    const page: Page<Event> = forStaff(await content(gateway.GET('/api/assets/{asset_id}/history', { params })))
    events.push(...page.items)
    cursor = page.next ?? undefined
  } while (cursor)
  return events.reverse()
}
