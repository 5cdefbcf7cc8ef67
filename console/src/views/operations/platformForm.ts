/** What is written in the form of a platform, and what the registry is asked for. */

import type { components } from '../../api/orchestrator'
import type { Platform } from '../../api/model'

export type NewPlatform = components['schemas']['NewPlatform']
export type PlatformChange = components['schemas']['PlatformChange']

export interface PlatformForm {
  id: string
  name: string
  description: string
  required: string
  optional: string
  version: string
  sources: string
  fourEyes: boolean
}

/** What is written in a line. */
export type LineName = Exclude<keyof PlatformForm, 'fourEyes'>

export function formOf(platform: Platform | null): PlatformForm {
  return {
    id: platform?.platform_id ?? '',
    name: platform?.display_name ?? '',
    description: platform?.description ?? '',
    required: platform?.required_refs.join(', ') ?? '',
    optional: platform?.optional_refs?.join(', ') ?? '',
    version: platform?.version_ref ?? '',
    sources: platform?.source_containers?.join(', ') ?? '',
    fourEyes: platform?.four_eyes ?? false,
  }
}

/** Names that commas or spaces separate. */
export function namesIn(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}

/** Names of places that commas separate: a folder may have a space in its name. */
export function placesIn(text: string): string[] {
  return text
    .split(',')
    .map((place) => place.trim())
    .filter(Boolean)
}

export function newPlatform(form: PlatformForm): NewPlatform {
  return {
    platform_id: form.id.trim(),
    display_name: form.name.trim(),
    description: form.description.trim() || null,
    required_refs: namesIn(form.required),
    optional_refs: namesIn(form.optional),
    version_ref: form.version.trim(),
    ...(form.sources.trim() && { source_containers: placesIn(form.sources) }),
    four_eyes: form.fourEyes,
  }
}

/** Only what is different: the registry refuses to touch what identifies datasets once there are some. */
export function changeOf(platform: Platform, form: PlatformForm): PlatformChange {
  const before = formOf(platform)
  const isNew = (name: LineName) => form[name].trim() !== before[name]
  return {
    ...(isNew('name') && { display_name: form.name.trim() }),
    ...(isNew('description') && { description: form.description.trim() }),
    ...(isNew('required') && { required_refs: namesIn(form.required) }),
    ...(isNew('optional') && { optional_refs: namesIn(form.optional) }),
    ...(isNew('version') && { version_ref: form.version.trim() }),
    ...(isNew('sources') && { source_containers: placesIn(form.sources) }),
    ...(form.fourEyes !== before.fourEyes && { four_eyes: form.fourEyes }),
  }
}
