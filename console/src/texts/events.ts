/** What events tell, in words. Who did it and when stands beside the words, not in them. */

import type { Event } from '../api/model'
import { count } from '../ui/format'
import { plural } from './plural'
import { shared } from './shared'

/** What an event says, read for its sentence; what it does not say is `null`. */
export interface Told {
  /** The node that it is about. */
  node: string
  /** `version 2 (2026-03, revision 1)`, or `the version`. */
  version: string
  text(name: string): string | null
  number(name: string): number | null
  list(name: string): string[]
  flag(name: string): boolean
}

type Sentence = (told: Told) => string

const capital = (words: string) => words.charAt(0).toUpperCase() + words.slice(1)
const because = (reason: string | null) => (reason ? `: ${reason}` : '')
const stateOf = (state: string | null) => (state ? (shared.states[state] ?? state) : '')
const urlModes: Record<string, string> = {
  latest_only: 'only the latest version has addresses',
  all_versions: 'every approved version has addresses of its own',
}

/** Children of a fan-out that did the same thing together share one event. */
function subject({ node, number, flag }: Told): [string, boolean] {
  const children = number('children')
  if (!flag('fan_out') || children === null) return [node, false]
  const [first, last] = [number('from'), number('to')]
  if (first !== null && first === last) return [`Child ${first} of ${node}`, false]
  const range = first === null ? '' : ` (${first} to ${last})`
  return [`${plural(children, 'child', 'children')} of ${node}${range}`, children !== 1]
}

function nodeReady(told: Told): string {
  const [who, several] = subject(told)
  return `${who} ${several ? 'are' : 'is'} ready`
}

function nodeDispatched(told: Told): string {
  const [who, several] = subject(told)
  const attempt = told.number('retry_count') ?? 0
  const [handler, queue] = [told.text('handler'), told.text('queue')]
  const where = [handler && `to ${handler}`, queue && `on ${queue}`].filter(Boolean).join(' ')
  const again = attempt > 0 ? `, attempt ${attempt + 1}` : ''
  return [`${who} ${several ? 'were' : 'was'} dispatched`, where].filter(Boolean).join(' ') + again
}

function nodeRunning(told: Told): string {
  const [children, worker] = [told.number('children'), told.text('worker_id')]
  if (children !== null) return `${told.node} made ${plural(children, 'child', 'children')}`
  return `${told.node} is running${worker ? ` on ${worker}` : ''}`
}

function nodeProgress(told: Told): string {
  const [done, total, message] = [told.number('done'), told.number('total'), told.text('message')]
  const share = done === null ? ' goes on' : ` is at ${count(done)}${total === null ? '' : ` of ${count(total)}`}`
  return `${told.node}${share}${because(message)}`
}

function nodeCompleted(told: Told): string {
  const [children, results, next] = [told.number('children'), told.number('count'), told.list('next')]
  if (next.length > 0) return `${told.node} chose the way to ${next.join(', ')}`
  if (children !== null) {
    const failed = told.number('failed') ?? 0
    const fallen = failed > 0 ? `, ${count(failed)} of them failed` : ''
    return `${told.node} completed: ${plural(children, 'child', 'children')}${fallen}`
  }
  return `${told.node} completed${results === null ? '' : ` with ${plural(results, 'result', 'results')}`}`
}

function nodeFailed(told: Told): string {
  const error = because(told.text('error'))
  if (told.flag('cancelled')) return `${told.node} was stopped${error}`
  return `${told.node} failed${error}${told.flag('will_retry') ? '; it is tried again' : ''}`
}

function nodeWaitingForWorker(told: Told): string {
  const [queue, command] = [told.text('queue'), told.text('command')]
  const waits = `${told.node} waits for a worker${queue ? ` of the queue ${queue}` : ''}`
  return command ? `${waits}: ${command}` : waits
}

function nodeRetry(told: Told): string {
  const [retry, delay] = [told.number('retry_count'), told.number('delay_seconds')]
  const when = delay === null ? '' : ` in ${delay.toFixed(1)} s`
  return `${told.node} is tried again${when}${retry === null ? '' : ` (retry ${retry})`}`
}

function jobFailed(told: Told): string {
  const node = told.text('node_id')
  return `The job failed${node ? ` at ${node}` : ''}${because(told.text('error'))}`
}

function jobResumed(told: Told): string {
  const ready = told.list('ready')
  return `The job goes on${ready.length > 0 ? ` with ${ready.join(', ')}` : ''}`
}

function callbackSent(told: Told): string {
  const [attempt, status] = [told.number('attempt'), told.number('status')]
  const answer = status === null ? '' : ` (status ${status})`
  return `The callback was delivered${answer}${(attempt ?? 1) > 1 ? ` at attempt ${attempt}` : ''}`
}

function callbackFailed(told: Told): string {
  const attempt = told.number('attempt')
  const next = told.text('next_attempt_at') ? '; it is tried again' : '; it is given up'
  return `The callback failed${attempt === null ? '' : ` at attempt ${attempt}`}${because(told.text('error'))}${next}`
}

const COMMANDS: Record<string, Sentence> = {
  'asset.reindex': () => 'The asset was set right',
  'cache.invalidate': () => 'What the services remember was renewed',
  'callback.redeliver': (told) => `Callback ${told.number('callback_id') ?? ''} is to be delivered again`,
  'client.add': (told) => `The client ${told.text('client_id')} was added`,
  'client.disable': (told) => `The client ${told.text('client_id')} was disabled`,
  'client.enable': (told) => `The client ${told.text('client_id')} was enabled`,
  'client.rotate': (told) => `The client ${told.text('client_id')} was given a new key`,
  'metadata.publish': (told) => `${capital(told.version)} was shown in the catalogue`,
  'metadata.publish_external': (told) => `${capital(told.version)} was shown to everyone`,
  'metadata.unpublish': (told) => `${capital(told.version)} was taken out of the catalogue`,
  'platform.add': (told) => `The platform ${told.text('platform_id')} was added`,
  'platform.change': (told) => `The platform ${told.text('platform_id')} was changed`,
  'schema.migrate': () => 'The schema was brought up to date',
}

function commandExecuted(told: Told): string {
  const command = told.text('command') ?? ''
  const words = COMMANDS[command]?.(told) ?? `The command ${command} was carried out`
  return told.text('outcome') === 'unchanged' ? `${words}: it was so already` : words
}

function approved(told: Told): string {
  const [clearance, before] = [told.text('clearance_state'), told.text('clearance_before')]
  const cleared = clearance === null || clearance === before ? '' : `, and the asset cleared: ${stateOf(clearance)}`
  return `${capital(told.version)} was approved${cleared}`
}

function clearanceChanged(told: Told): string {
  const before = told.text('before')
  return `The clearance became ${stateOf(told.text('clearance_state'))}${before ? `; it was ${stateOf(before)}` : ''}`
}

function urlModeChanged(told: Told): string {
  const mode = told.text('url_mode') ?? ''
  return `The addresses were changed: ${urlModes[mode] ?? mode}`
}

function metadataChanged(told: Told): string {
  const fields = told.list('fields')
  return `The description of ${told.version} was changed${because(fields.join(', '))}`
}

function processingFailed(told: Told): string {
  const error = told.text('error') ?? told.text('reason')
  return `Processing of ${told.version} failed${because(error)}`
}

const plain =
  (words: string): Sentence =>
  () =>
    words
const ofVersion =
  (words: string): Sentence =>
  (told) =>
    `${capital(told.version)} ${words}${because(told.text('reason'))}`
const failing =
  (words: string): Sentence =>
  (told) =>
    `${words}${because(told.text('error'))}`

export const events: Record<Event['event_type'], Sentence> = {
  job_created: (told) => `The job was submitted${told.text('workflow_id') ? ` for ${told.text('workflow_id')}` : ''}`,
  job_started: plain('The job started'),
  job_completed: plain('The job completed'),
  job_failed: jobFailed,
  job_cancelled: plain('The job was cancelled'),
  job_resumed: jobResumed,
  job_reclaimed: plain('Another orchestrator took the job over'),
  node_ready: nodeReady,
  node_dispatched: nodeDispatched,
  node_running: nodeRunning,
  node_progress: nodeProgress,
  node_completed: nodeCompleted,
  node_failed: nodeFailed,
  node_retry: nodeRetry,
  node_skipped: (told) => `${told.node} was skipped`,
  node_waiting_for_worker: nodeWaitingForWorker,
  checkpoint_saved: (told) => `${told.node} saved the phase ${told.text('phase') ?? ''}`.trimEnd(),
  result_ignored: (told) => `A late result of ${told.node} was ignored${because(told.text('reason'))}`,
  callback_sent: callbackSent,
  callback_failed: callbackFailed,
  command_executed: commandExecuted,
  asset_created: plain('The asset was created'),
  asset_version_added: ofVersion('was submitted'),
  asset_version_overwritten: ofVersion('was submitted again'),
  asset_version_reprocessed: ofVersion('is processed again'),
  asset_version_deleted: ofVersion('was deleted'),
  asset_processing_started: (told) => `Processing of ${told.version} began`,
  asset_processing_completed: (told) => `Processing of ${told.version} completed`,
  asset_processing_failed: processingFailed,
  asset_approved: approved,
  asset_rejected: ofVersion('was rejected'),
  asset_endorsed: ofVersion('was approved for the public by one of two reviewers'),
  asset_revoked: ofVersion('was revoked'),
  asset_clearance_changed: clearanceChanged,
  asset_unpublished: (told) => `The asset was unpublished${because(told.text('reason'))}`,
  asset_revived: plain('The asset was revived by a submission'),
  asset_version_retried: ofVersion('is tried again'),
  asset_url_mode_changed: urlModeChanged,
  asset_metadata_changed: metadataChanged,
  asset_export_completed: plain('The public copies were made'),
  asset_export_failed: failing('Making the public copies failed'),
  asset_reversal_completed: plain('The public copies were removed'),
  asset_reversal_failed: failing('Removing the public copies failed'),
  asset_unpublish_completed: plain('The asset was removed from all services'),
  asset_unpublish_failed: failing('Removing the asset from the services failed'),
}

export function version(ordinal: number | null, label: string | null, revision: number | null): string {
  if (ordinal === null) return 'the version'
  const more = [label, revision === null ? null : `revision ${revision}`].filter(Boolean).join(', ')
  return `version ${ordinal}${more ? ` (${more})` : ''}`
}

/** What kind of event it is: `Node completed`. */
export const eventName = (type: string) => capital(type.replaceAll('_', ' '))
