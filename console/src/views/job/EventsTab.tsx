import { useVirtualizer } from '@tanstack/react-virtual'
import { useCallback, useEffect, useMemo, useRef, useState, type RefObject } from 'react'

import type { Event, JobDetail } from '../../api/model'
import { eventWords } from '../../events/words'
import { eventName } from '../../texts/events'
import { job as texts } from '../../texts/job'
import { useAddress } from '../../ui/address'
import { Button } from '../../ui/Button'
import { Choice } from '../../ui/Choice'
import { Field } from '../../ui/Field'
import { count } from '../../ui/format'
import { Empty, Loading, Notice, ProblemNotice } from '../../ui/notices'
import { TypedText } from '../../ui/TypedText'
import { EventLine } from './EventLine'
import { useEventLog } from './JobEvents'

const LINE_HEIGHT = 30

/** The log of the job: it grows by itself, and thousands of lines cost no more than those that are seen. */
export function EventsTab({ job }: { job: JobDetail }) {
  const { events, isWhole, isReading, error, readMore } = useEventLog()
  const [parameters] = useAddress()
  const [follows, setFollows] = useState(job.ended_at === null || job.ended_at === undefined)
  const [type, text] = [parameters.get('type') ?? '', parameters.get('q') ?? '']
  const shown = useMemo(() => events.filter((event) => isLike(event, type, text)), [events, type, text])
  return (
    <div className="job-events">
      <Filters events={events} shown={shown.length} follows={follows} onFollow={setFollows} />
      {error !== null && <ProblemNotice error={error} onRetry={readMore} />}
      {!isWhole && !isReading && error === null && events.length > 0 && (
        <Notice kind="info">
          {texts.events.more(count(events.length))} <Button onClick={readMore}>{texts.events.loadMore}</Button>
        </Notice>
      )}
      {shown.length > 0 && <Lines events={shown} follows={follows} onLeave={() => setFollows(false)} />}
      {shown.length === 0 && (isReading ? <Loading /> : error === null && <Empty>{texts.events.none}</Empty>)}
    </div>
  )
}

function isLike(event: Event, type: string, text: string): boolean {
  if (type && event.event_type !== type) return false
  if (!text) return true
  const wanted = text.toLowerCase()
  const told = [event.node_id, event.actor, eventWords(event)]
  return told.some((each) => each?.toLowerCase().includes(wanted))
}

interface FiltersProps {
  events: readonly Event[]
  shown: number
  follows: boolean
  onFollow: (follows: boolean) => void
}

function Filters({ events, shown, follows, onFollow }: FiltersProps) {
  const [parameters, change] = useAddress()
  const types = useMemo(() => [...new Set(events.map((event) => event.event_type))], [events])
  return (
    <div className="filters">
      <Choice
        label={texts.events.type}
        value={parameters.get('type') ?? ''}
        any={texts.events.all}
        choices={types.map((each) => [each, eventName(each)] as const)}
        onChange={(type) => change({ type })}
      />
      <Field label={texts.events.text}>
        {(control) => (
          <TypedText {...control} type="search" value={parameters.get('q') ?? ''} onChange={(q) => change({ q })} />
        )}
      </Field>
      <label className="job-follow">
        <input type="checkbox" checked={follows} onChange={(event) => onFollow(event.target.checked)} />
        {texts.events.follow}
      </label>
      <span className="soft job-events-count">{texts.events.count(count(shown), count(events.length))}</span>
    </div>
  )
}

interface LinesProps {
  events: readonly Event[]
  follows: boolean
  /** Whoever scrolls back does not want to be taken to the end again. */
  onLeave: () => void
}

function Lines({ events, follows, onLeave }: LinesProps) {
  const frame = useRef<HTMLDivElement>(null)
  const [opened, toggle] = useOpened()
  const lines = useVirtualizer({
    count: events.length,
    getScrollElement: () => frame.current,
    estimateSize: () => LINE_HEIGHT,
    getItemKey: useCallback((index: number) => events[index]!.event_id ?? index, [events]),
    overscan: 12,
  })
  useEnd(frame, follows, events.length)

  return (
    <div
      ref={frame}
      className="job-log"
      role="list"
      aria-label={texts.events.label}
      tabIndex={0}
      onWheel={(event) => event.deltaY < 0 && onLeave()}
      onTouchMove={onLeave}
      onKeyDown={(event) => ['ArrowUp', 'PageUp', 'Home'].includes(event.key) && onLeave()}
    >
      <div className="job-log-whole" style={{ height: lines.getTotalSize() }}>
        {lines.getVirtualItems().map(({ key, index, start }) => (
          <div
            key={key}
            ref={lines.measureElement}
            data-index={index}
            className="job-log-line"
            role="listitem"
            aria-posinset={index + 1}
            aria-setsize={events.length}
            style={{ transform: `translateY(${start}px)` }}
          >
            <EventLine event={events[index]!} isOpen={opened.has(events[index]!)} onToggle={toggle} />
          </div>
        ))}
      </div>
    </div>
  )
}

/** The events whose data is shown. */
function useOpened(): [ReadonlySet<Event>, (event: Event) => void] {
  const [opened, setOpened] = useState<ReadonlySet<Event>>(new Set())
  const toggle = useCallback((event: Event) => {
    setOpened((before) => {
      const after = new Set(before)
      if (!after.delete(event)) after.add(event)
      return after
    })
  }, [])
  return [opened, toggle]
}

/** Stays at the end while lines are added there. */
function useEnd(frame: RefObject<HTMLDivElement | null>, follows: boolean, length: number) {
  useEffect(() => {
    const element = frame.current
    if (follows && element) element.scrollTop = element.scrollHeight
  }, [frame, follows, length])
}
