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
  private jobs = new Set<string>()
  private assets = new Set<string>()
  private working = false

  constructor(
    private readonly client: QueryClient,
    private readonly concerns: (key: QueryKey) => boolean,
    private readonly pauseMs: number,
  ) {}

  add(event: Event): void {
    if (event.job_id) this.jobs.add(event.job_id)
    if (event.asset_id) this.assets.add(event.asset_id)
    if (!this.working) void this.work()
  }

  /** Reads anew what was touched; what is touched meanwhile waits until that is through. */
  private async work(): Promise<void> {
    this.working = true
    while (this.jobs.size > 0 || this.assets.size > 0) {
      await after(GATHER_MS)
      const { jobs, assets } = this
      this.jobs = new Set()
      this.assets = new Set()
      await this.client.invalidateQueries({
        predicate: ({ queryKey }) => this.concerns(queryKey) && isTouched(queryKey, jobs, assets),
      })
      await after(this.pauseMs)
    }
    this.working = false
  }
}

function after(milliseconds: number): Promise<void> {
  return new Promise((resume) => setTimeout(resume, milliseconds))
}

function isTouched([kind, id]: QueryKey, jobs: Set<string>, assets: Set<string>): boolean {
  const [what, which] = [String(kind), String(id)]
  if (what === 'job') return jobs.has(which)
  if (what === 'asset') return assets.has(which)
  return (jobs.size > 0 && OF_ANY_JOB.has(what)) || (assets.size > 0 && OF_ANY_ASSET.has(what))
}
