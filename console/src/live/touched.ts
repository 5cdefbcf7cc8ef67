/** Which of the things on the page events have touched: these are read anew, at once, and once a second under load. */

import type { QueryClient, QueryKey } from '@tanstack/react-query'

import type { Event } from '../api/model'

const GATHER_MS = 120
const PAUSE_MS = 1000
/** The overview is many questions at once, and every event changes it: the gateway answers only so many in a minute. */
const OVERVIEW_PAUSE_MS = 2000

/**
 * The first part of a query's key says what it shows: `job` and `asset` are one thing, whose id is the second part;
 * each of the others is a list or a sum, which any job or any asset may change.
 */
const OF_ANY_JOB = new Set(['jobs', 'overview', 'queues'])
const OF_ANY_ASSET = new Set(['assets', 'reviews', 'overview'])
/** What a command changes, by the first word of its name, such as `client.add`. */
const OF_COMMANDS: Record<string, string> = { client: 'clients', platform: 'platforms' }

/** What events have touched since the last round. */
interface Gathered {
  jobs: Set<string>
  assets: Set<string>
  lists: Set<string>
}

export class Touched {
  private readonly rounds: Round[]

  constructor(client: QueryClient) {
    const isOverview = ([kind]: QueryKey) => kind === 'overview'
    this.rounds = [
      new Round(client, (key) => !isOverview(key), PAUSE_MS),
      new Round(client, isOverview, OVERVIEW_PAUSE_MS),
    ]
  }

  add(event: Event): void {
    this.rounds.forEach((round) => round.add(event))
  }
}

/** Reads some of the queries anew, round after round while events come, with a pause after each. */
class Round {
  private gathered = nothing()
  private working = false

  constructor(
    private readonly client: QueryClient,
    private readonly concerns: (key: QueryKey) => boolean,
    private readonly pauseMs: number,
  ) {}

  add(event: Event): void {
    const { jobs, assets, lists } = this.gathered
    if (event.job_id) jobs.add(event.job_id)
    if (event.asset_id) assets.add(event.asset_id)
    const list = OF_COMMANDS[String(event.data?.command).split('.')[0]!]
    if (list) lists.add(list)
    if (!this.working) void this.work()
  }

  /** Reads anew what was touched; what is touched meanwhile waits until that is through. */
  private async work(): Promise<void> {
    this.working = true
    while (Object.values(this.gathered).some((those) => those.size > 0)) {
      await after(GATHER_MS)
      const { gathered } = this
      this.gathered = nothing()
      await this.client.invalidateQueries({
        predicate: ({ queryKey }) => this.concerns(queryKey) && isTouched(queryKey, gathered),
      })
      await after(this.pauseMs)
    }
    this.working = false
  }
}

function nothing(): Gathered {
  return { jobs: new Set(), assets: new Set(), lists: new Set() }
}

function after(milliseconds: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, milliseconds))
}

function isTouched([kind, id]: QueryKey, { jobs, assets, lists }: Gathered): boolean {
  const [what, which] = [String(kind), String(id)]
  if (what === 'job') return jobs.has(which)
  if (what === 'asset') return assets.has(which)
  if (lists.has(what)) return true
  return (jobs.size > 0 && OF_ANY_JOB.has(what)) || (assets.size > 0 && OF_ANY_ASSET.has(what))
}
