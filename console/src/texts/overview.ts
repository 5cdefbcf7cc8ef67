/** Words of the overview. */

import { count } from '../ui/format'
import { noun, plural } from './plural'

export const overview = {
  title: 'Overview',
  byState: 'Jobs by state',
  jobs: (number: string) => noun(number, 'job', 'jobs'),

  throughput: {
    title: 'Jobs that ended in 24 hours',
    completed: 'Completed',
    failed: 'Failed',
    cancelled: 'Cancelled',
    perHour: (rate: string) => `${rate} an hour`,
    hour: 'Hour',
    choose: 'Hour that is told in numbers',
    asTable: 'As a table',
    during: (from: string, to: string) => `${from}–${to}`,
    told: (when: string, completed: number, failed: number, cancelled: number) =>
      `${when}: ${count(completed)} completed, ${count(failed)} failed, ${count(cancelled)} cancelled`,
    summary: (completed: number, failed: number, cancelled: number, busiest: string | null) =>
      `Bar chart of the jobs that ended in the last 24 hours, by hour: ${count(completed)} completed, ` +
      `${count(failed)} failed, ${count(cancelled)} cancelled.` +
      (busiest === null ? '' : ` Most of them at ${busiest}.`),
  },

  durations: {
    title: 'Durations, 7 days',
    list: 'Durations of completed jobs by workflow',
    workflow: 'Workflow',
    jobs: 'Jobs',
    median: 'p50',
    most: 'p95',
    none: 'No job has completed in the last 7 days.',
  },

  queues: {
    title: 'Queues',
    list: 'Queues with their depths',
    queue: 'Queue',
    waiting: 'Waiting',
    delayed: 'Delayed',
    atWork: 'At work',
    dead: 'Dead',
    workers: (number: number) => (number === 0 ? 'no worker' : plural(number, 'worker', 'workers')),
    oldest: 'Oldest',
    none: 'There are no queues yet: no worker has reported, and nothing waits.',
  },

  processes: {
    title: 'Processes',
    list: 'Orchestrators and workers with their health',
    process: 'Process',
    state: 'State',
    holds: 'Holds',
    heard: 'Heard',
    orchestrator: 'Orchestrator',
    worker: 'Worker',
    place: (host: string, version: string) => `${host} · v${version}`,
    jobs: (held: number) => plural(held, 'job', 'jobs'),
    tasks: (held: number, most: number) => `${count(held)} / ${count(most)} tasks`,
    none: 'No orchestrator and no worker has reported.',
    database: 'Database',
    answers: 'Answers',
    silent: 'Does not answer',
    answered: (milliseconds: number) => `${Math.round(milliseconds)} ms`,
  },

  attention: {
    title: 'Needs attention',
    sum: (number: number) => `${plural(number, 'thing needs', 'things need')} attention.`,
    nothing: 'Nothing needs attention.',
    nothingHint: 'No failures, nothing stuck, no dead letters, nothing to review.',
    database: 'The database is not as it should be',
    target: (name: string) => `${name} does not answer`,
    noOrchestrator: 'No orchestrator is alive: jobs do not go on',
    noWorker: 'No worker is alive: tasks wait',
    unmanned: (queue: string) => `waiting on ${queue}, which no worker serves: graticule worker --queues ${queue}`,
    failedVersions: (number: string) => noun(number, 'version failed', 'versions failed'),
    failedCopies: (number: string) =>
      noun(number, 'export or withdrawal failed', 'exports or withdrawals failed'),
    stuckVersions: (number: string) => `${noun(number, 'version', 'versions')} in processing for over an hour`,
    failedJobs: (number: string) => `${noun(number, 'job', 'jobs')} failed in 24 hours`,
    deadLetters: (number: string) => noun(number, 'dead letter', 'dead letters'),
    reviews: (number: string) => `${noun(number, 'version waits', 'versions wait')} for review`,
    version: (platform: string, refs: string, label: string) => `${platform} · ${refs} · ${label}`,
    more: (shown: number) => `${count(shown)}+`,
  },
}
