/** The stream of all events: it comes back by itself after a loss, and after a short one begins where it was cut. */

import { ORCHESTRATOR } from '../api/client'
import type { Event } from '../api/model'

export type StreamState = 'live' | 'lost'

const ADDRESS = `${ORCHESTRATOR}/api/v1/events/stream`
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 8000
/** What happened in a longer loss is not told event by event: whoever shows things reads them anew in any case. */
const WORTH_REPLAY_MS = 60_000

export class EventStream {
  private source: EventSource | null = null
  private timer: ReturnType<typeof setTimeout> | undefined
  private pause = FIRST_PAUSE_MS
  private last: string | null = null
  private cutAt: number | null = null

  constructor(
    private readonly types: readonly string[],
    private readonly onEvent: (event: Event) => void,
    private readonly onState: (state: StreamState) => void,
  ) {}

  open(): void {
    this.close()
    if (this.cutAt !== null && Date.now() - this.cutAt > WORTH_REPLAY_MS) this.last = null
    const source = new EventSource(this.last === null ? ADDRESS : `${ADDRESS}?after=${this.last}`)
    this.source = source
    source.onopen = () => {
      this.pause = FIRST_PAUSE_MS
      this.cutAt = null
      this.onState('live')
    }
    source.onerror = () => this.openLater()
    const hear = (message: MessageEvent<string>) => {
      this.last = message.lastEventId || this.last
      this.onEvent(JSON.parse(message.data) as Event)
    }
    for (const type of this.types) source.addEventListener(type, hear)
  }

  close(): void {
    clearTimeout(this.timer)
    if (this.source === null) return
    this.source.close()
    this.source = null
    this.cutAt ??= Date.now() // attempts that fail make the loss no shorter
  }

  /** A browser gives up where a server answers with an error, so the next attempt is ours. */
  private openLater(): void {
    this.close()
    this.onState('lost')
    this.timer = setTimeout(() => this.open(), this.pause)
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE_MS)
  }
}
