/** Events as people tell them. */

import type { Event } from '../api/model'
import { eventName, events, version, type Told } from '../texts/events'

/** Tells what happened, in one sentence; who did it and when is for the page to show beside it. */
export function eventWords(event: Event): string {
  const sentence = events[event.event_type]
  // A newer gateway may know types that this console does not.
  return sentence ? sentence(told(event)) : eventName(event.event_type)
}

function told({ node_id, version_ordinal, data = {} }: Event): Told {
  const text = (name: string) => (typeof data[name] === 'string' ? data[name] : null)
  const number = (name: string) => (typeof data[name] === 'number' ? data[name] : null)
  return {
    node: node_id ?? '',
    version: version(version_ordinal ?? null, text('version_label'), number('revision')),
    text,
    number,
    list: (name) => (Array.isArray(data[name]) ? data[name].map(String) : []),
    flag: (name) => data[name] === true,
  }
}
