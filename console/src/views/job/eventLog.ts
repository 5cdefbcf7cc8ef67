/**
 * The events of one job in their order, each once: read in pages, then heard from the live stream.
 *
 * It is read when somebody looks at it first. What was missed (while the stream was cut, or where there is none)
 * is found by reading on from the last page, which may have grown.
 */

import type { Event, Page } from '../../api/model'

/** So many are read by themselves; a job may have hundreds of thousands. */
const AT_ONCE = 20_000
/** Events come by the hundred; they are shown a few times a second. */
const PAUSE_MS = 250

export interface LogState {
  events: readonly Event[]
  /** Whether it was read to its end. */
  isWhole: boolean
  isReading: boolean
  error: unknown
}

type ReadPage = (cursor: string | null) => Promise<Page<Event>>

export class EventLog {
  private state: LogState = { events: [], isWhole: false, isReading: false, error: null }
  private readonly known = new Set<number>()
  private readonly listeners = new Set<() => void>()
  private heard: Event[] = []
  private timer: ReturnType<typeof setTimeout> | undefined
  private lastPage: string | null = null
  private most = AT_ONCE
  private begun = false

  constructor(private readonly readPage: ReadPage) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    if (!this.begun) {
      this.begun = true
      void this.read()
    }
    return () => this.listeners.delete(listener)
  }

  getState = (): LogState => this.state

  /** Takes an event of the live stream. */
  hear(event: Event): void {
    if (!this.begun) return
    this.heard.push(event)
    this.timer ??= setTimeout(() => this.showHeard(), PAUSE_MS)
  }

  /** Finds what was missed, if anybody looks. */
  catchUp(): void {
    if (this.begun && this.listeners.size > 0) void this.read()
  }

  readMore(): void {
    this.most += AT_ONCE
    void this.read()
  }

  close(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }

  private async read(): Promise<void> {
    if (this.state.isReading) return
    this.become({ isReading: true })
    try {
      let isWhole = false
      while (!isWhole && this.known.size < this.most) {
        const page = await this.readPage(this.lastPage)
        isWhole = page.next === null
        this.lastPage = page.next ?? this.lastPage
        this.add(page.items, { isWhole })
      }
      this.become({ isReading: false, error: null })
    } catch (error) {
      this.become({ isReading: false, error })
    }
    this.showHeard()
  }

  /** What is heard before the end was read would stand after a gap: it waits, or is read in its turn. */
  private showHeard(): void {
    this.close()
    if (this.state.isWhole) {
      this.add(this.heard)
      this.heard = []
    } else if (!this.state.isReading) {
      this.heard = []
    }
  }

  private add(events: readonly Event[], change: Partial<LogState> = {}): void {
    const fresh = events.filter(({ event_id: id }) => typeof id === 'number' && !this.known.has(id))
    if (fresh.length === 0 && Object.keys(change).length === 0) return
    for (const event of fresh) this.known.add(event.event_id!)
    this.become({ ...change, events: fresh.length > 0 ? inOrder(this.state.events, fresh) : this.state.events })
  }

  private become(change: Partial<LogState>): void {
    this.state = { ...this.state, ...change }
    this.listeners.forEach((listener) => listener())
  }
}

function inOrder(events: readonly Event[], fresh: Event[]): Event[] {
  const all = [...events, ...fresh]
  const isInOrder = all.every((event, index) => index === 0 || all[index - 1]!.event_id! < event.event_id!)
  return isInOrder ? all : all.sort((one, other) => one.event_id! - other.event_id!)
}
