/** Whether an event is good news. */

import type { Event } from '../api/model'
import type { Tone } from '../ui/parts'

const TONES: Partial<Record<Event['event_type'], Tone>> = {
  job_completed: 'good',
  node_completed: 'good',
  job_failed: 'bad',
  node_failed: 'bad',
  callback_failed: 'bad',
  asset_processing_failed: 'bad',
  asset_export_failed: 'bad',
  asset_reversal_failed: 'bad',
  asset_unpublish_failed: 'bad',
  job_cancelled: 'warn',
  job_reclaimed: 'warn',
  node_retry: 'warn',
  result_ignored: 'warn',
  job_started: 'busy',
  job_resumed: 'busy',
  node_running: 'busy',
}

export function toneOfEvent(event: Event): Tone {
  return TONES[event.event_type] ?? 'idle'
}
