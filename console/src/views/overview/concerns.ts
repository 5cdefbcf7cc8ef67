/** What someone should look at, from all that the overview knows; what it does not know is left out. */

import type { components } from '../../api/gateway'
import type { Health, JobListItem, Platform, Queue, Statistics } from '../../api/model'
import type { components as Orchestrator } from '../../api/orchestrator'
import { datasetName, partnerOf, type Dataset } from '../../data/names'
import { overview } from '../../texts/overview'
import { count, shortId } from '../../ui/format'
import type { Tone } from '../../ui/parts'

const texts = overview.attention

type FailedVersion = Orchestrator['schemas']['FailedVersion']
type StuckVersion = Orchestrator['schemas']['StuckVersion']
type WaitingVersion = components['schemas']['WaitingVersion']

interface Found<T> {
  items: T[]
  next?: string | null
}

export interface Known {
  partners?: Platform[]
  statistics?: Statistics
  health?: Health
  queues?: Found<Queue>
  failedVersions?: Found<FailedVersion>
  stuckVersions?: Found<StuckVersion>
  newestFailedJob?: Found<JobListItem>
  reviews?: Found<WaitingVersion>
}

/** One thing to look at, where that is done, and one example of it. */
export interface Concern {
  id: string
  tone: Tone
  number: string
  text: string
  to: string
  example?: Example
}

interface Example {
  text: string
  to: string
  at: string | null
  error?: string | null
}

/** Gives the concerns, what stands still before what waits for a decision. */
export function concernsOf(known: Known): Concern[] {
  return [
    ...ofHealth(known.health),
    ...ofQueues(known.queues?.items ?? []),
    ...ofFailedVersions(known),
    ...ofFailedJobs(known.statistics, known.newestFailedJob),
    ...ofStuckVersions(known),
    ...ofReviews(known),
  ]
}

function ofHealth(health: Health | undefined): Concern[] {
  if (!health) return []
  const lives = (processes: { state: string }[]) => processes.some(({ state }) => state === 'alive')
  const silent = Object.entries(health.targets.targets).filter(([, target]) => !target.ok)
  const found: [string, boolean, string][] = [
    ['database', !health.database.ok, texts.database],
    ['orchestrators', health.database.ok && !lives(health.orchestrators), texts.noOrchestrator],
    ['workers', health.database.ok && !lives(health.workers), texts.noWorker],
    ...silent.map(([name]): [string, boolean, string] => [`target-${name}`, true, texts.target(name)]),
  ]
  return found
    .filter(([, isWrong]) => isWrong)
    .map(([id, , text]) => ({ id, tone: 'bad', number: '!', text, to: '/operations?tab=processes' }))
}

function ofQueues(queues: Queue[]): Concern[] {
  const unmanned = queues.filter((queue) => queue.unserved > 0)
  const dead = queues.reduce((sum, queue) => sum + queue.dead, 0)
  return [
    ...unmanned.map(
      (queue): Concern => ({
        id: `queue-${queue.queue}`,
        tone: 'bad',
        number: count(queue.unserved),
        text: texts.unmanned(queue.queue),
        to: '/operations?tab=queues',
      }),
    ),
    ...concern('dead', 'bad', count(dead), texts.deadLetters, '/operations?tab=dead-letters'),
  ]
}

function ofFailedVersions({ failedVersions: found, partners }: Known): Concern[] {
  const items = found?.items ?? []
  const failures = (id: string, of: FailedVersion[], text: (number: string) => string, to: string) => {
    const [newest] = of
    const example = newest && { ...exampleOf(newest, partners), at: newest.failed_at, error: newest.error }
    return concern(id, 'bad', numberOf({ items: of, next: of.length > 0 ? found?.next : null }), text, to, example)
  }
  const copies = items.filter((each) => each.purpose !== 'process')
  const processed = items.filter((each) => each.purpose === 'process')
  return [
    ...failures('failed', processed, texts.failedVersions, '/assets?processing_state=failed'),
    ...failures('copies', copies, texts.failedCopies, `/jobs/${copies[0]?.job_id ?? ''}`),
  ]
}

function ofStuckVersions({ stuckVersions: found, partners }: Known): Concern[] {
  const longest = found?.items[0]
  const example = longest && { ...exampleOf(longest, partners), at: longest.processing_started_at }
  return concern('stuck', 'warn', numberOf(found), texts.stuckVersions, '/assets?processing_state=processing', example)
}

function ofFailedJobs(statistics: Statistics | undefined, found: Found<JobListItem> | undefined): Concern[] {
  const newest = found?.items[0]
  const example = newest && {
    text: `${newest.workflow_id} ${shortId(newest.job_id)}`,
    to: `/jobs/${newest.job_id}`,
    at: newest.ended_at ?? newest.created_at,
    error: newest.error_message,
  }
  const number = count(statistics?.failed_24h ?? 0)
  return concern('jobs', 'bad', number, texts.failedJobs, '/jobs?status=failed', example)
}

function ofReviews({ reviews: found, partners }: Known): Concern[] {
  const longest = found?.items[0]
  const example = longest && {
    ...exampleOf(longest, partners),
    to: `/review/${longest.asset_id}/${longest.version_ordinal}`,
    at: longest.waiting_since,
  }
  return concern('reviews', 'warn', numberOf(found), texts.reviews, '/review', example)
}

function concern(
  id: string,
  tone: Tone,
  number: string,
  text: (number: string) => string,
  to: string,
  example?: Example,
): Concern[] {
  return number === '0' ? [] : [{ id, tone, number, text: text(number), to, example }]
}

/** A page tells how many there are, or that there are more than it holds. */
function numberOf(found: Found<unknown> | undefined): string {
  const number = found?.items.length ?? 0
  return found?.next ? texts.more(number) : count(number)
}

interface Version extends Dataset {
  asset_id: string
  version_label: string
}

function exampleOf(version: Version, partners: Platform[] | undefined) {
  const name = datasetName(version, partnerOf(version, partners))
  return { text: texts.version(version.platform_id, name, version.version_label), to: `/assets/${version.asset_id}` }
}
