import { useQuery } from '@tanstack/react-query'

import type { Event } from '../../api/model'
import { history } from '../../data/assets'
import { eventWords } from '../../events/words'
import { useEvery } from '../../live/live'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Answer } from '../../ui/Answer'
import { Card, Time } from '../../ui/parts'

const MOST_SHOWN = 500

/** What happened to the asset, the newest first. */
export function History({ assetId, ordinal }: { assetId: string; ordinal: number }) {
  const found = useQuery({ ...history(assetId), refetchInterval: useEvery() })
  return (
    <Card title={texts.history}>
      <Answer query={found}>
        {(events) => (
          <div className="review-scroll" tabIndex={0} role="region" aria-label={shared.scrollable(texts.history)}>
            <ol className="review-history">
              {events
                .slice(-MOST_SHOWN)
                .reverse()
                .map((event) => (
                  <li key={event.event_id} className={event.version_ordinal === ordinal ? 'of-this' : undefined}>
                    <Happened event={event} />
                  </li>
                ))}
            </ol>
          </div>
        )}
      </Answer>
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
