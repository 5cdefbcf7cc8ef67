import { memo } from 'react'

import type { Event } from '../../api/model'
import { toneOfEvent } from '../../events/tones'
import { eventWords } from '../../events/words'
import { job as texts } from '../../texts/job'
import { Button } from '../../ui/Button'
import { dateTime } from '../../ui/format'
import { Json } from '../../ui/parts'
import { clock } from './clock'

interface Props {
  event: Event
  isOpen: boolean
  onToggle: (event: Event) => void
}

/** One event in words: when, what, and by whom; its data where it is asked for. */
export const EventLine = memo(function EventLine({ event, isOpen, onToggle }: Props) {
  const words = eventWords(event)
  const hasData = Object.keys(event.data ?? {}).length > 0
  return (
    <>
      <div className="job-event" data-event={event.event_type}>
        <time dateTime={event.created_at} title={dateTime(event.created_at)}>
          {clock(event.created_at)}
        </time>
        <span className={`job-event-sign tone-${toneOfEvent(event)}`} aria-hidden="true" />
        <span className="job-event-words" title={words}>
          {words}
        </span>
        {event.actor && <span className="soft">{texts.events.by(event.actor)}</span>}
        {hasData && (
          <Button kind="quiet" className="job-event-data" aria-expanded={isOpen} onClick={() => onToggle(event)}>
            {texts.events.data}
          </Button>
        )}
      </div>
      {isOpen && <Json value={event.data} label={texts.events.dataOf(event.event_id ?? 0)} />}
    </>
  )
})
