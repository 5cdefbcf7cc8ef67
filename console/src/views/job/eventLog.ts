/**
 * The events of one job in their order, each once: read in pages, then heard from the live stream.
 *
 * It is read when somebody looks at it. What was missed (while nobody looked or the stream was cut, or where there is
 * none) is found by reading on from the last page, which may have grown.
 */

import type { Event, Page } from '../../api/model'

/** So many are read without being asked again; a job may have hundreds of thousands. */
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
  /** It is longer than what is read at once. */
  private isCut = false
  private isMoreWanted = false

  constructor(private readonly readPage: ReadPage) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    if (this.listeners.size === 1) this.catchUp()
    return () => this.listeners.delete(listener)
  }

  getState = (): LogState => this.state

  /** Takes an event of the live stream, if anybody looks. */
  hear(event: Event): void {
    if (this.listeners.size === 0) return
    this.heard.push(event)
    this.timer ??= setTimeout(() => this.showHeard(), PAUSE_MS)
  }

  /** Finds what was missed, if anybody looks; a log that is too long is read on only where that is asked for. */
  catchUp(): void {
    if (this.listeners.size > 0 && !this.isCut) this.readMore()
  }

  /** Reads on; where that is under way already, once more, because what was asked for may be after it. */
  readMore(): void {
    if (this.state.isReading) this.isMoreWanted = true
    else void this.read()
  }

  close(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }

  private async read(): Promise<void> {
    this.become({ isReading: true })
    try {
      const most = this.known.size + AT_ONCE
      let isWhole = false
      while (this.listeners.size > 0 && this.known.size < most && (!isWhole || this.isMoreWanted)) {
        this.isMoreWanted = false
        const page = await this.readPage(this.lastPage)
        isWhole = page.next === null
        this.lastPage = page.next ?? this.lastPage
        this.add(page.items, { isWhole })
      }
      this.isCut = !isWhole && this.known.size >= most
      this.become({ isReading: false, error: null })
    } catch (error) {
      this.become({ isReading: false, error })
    }
    this.showHeard()
  }

  /** What is heard before the end was read would stand after a gap: it waits, or is read in its turn. */
  private showHeard(): void {
    this.close()
    if (this.state.isReading) return
    if (this.state.isWhole) this.add(this.heard)
    this.heard = []
  }

  private add(events: readonly Event[], change: Partial<LogState> = {}): void {
    const fresh = events.filter((event) => this.isNew(event))
    if (fresh.length === 0 && Object.keys(change).length === 0) return
    this.become({ ...change, events: fresh.length > 0 ? inOrder(this.state.events, fresh) : this.state.events })
  }

  /** Tells whether an event comes for the first time. */
  private isNew({ event_id: id }: Event): boolean {
    if (typeof id !== 'number' || this.known.has(id)) return false
    this.known.add(id)
    return true
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
