/** What a revision has left behind. */

import { assets } from '../../texts/assets'

export interface Output {
  name: string
  value: string
}

/** Reads the outputs of a version, or of a superseded revision, in the order in which they are told. */
export function outputsOf(made: object): Output[] {
  const values = made as Record<string, unknown>
  return Object.keys(assets.outputs)
    .filter((key) => values[key] !== null && values[key] !== undefined)
    .map((key) => ({ name: assets.outputs[key] ?? key, value: String(values[key]) }))
}

/** A file of an item of the catalogue. */
export interface StacFile {
  href: string
  'file:size'?: number
}

const BLOB = 'urn:graticule:blob:'

/** The stored files among the assets of an item; others are addresses of services. */
export function storedFiles(files: Record<string, StacFile>): { path: string; size: number | null }[] {
  return Object.values(files)
    .filter(({ href }) => href.startsWith(BLOB))
    .map((file) => ({ path: file.href.slice(BLOB.length), size: file['file:size'] ?? null }))
}
