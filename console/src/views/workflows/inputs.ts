/** From what is typed into the form of a workflow to the inputs of a job. The orchestrator checks them again. */

import type { InputSpec } from '../../api/model'
import { workflows } from '../../texts/workflows'

const texts = workflows.form

const LINE = 60
const INTEGER = /^[+-]?\d+$/
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

/** What a field says: a value, or nothing where it is empty, or what is wrong with it. */
export type Reading = { value?: unknown; error?: undefined } | { value?: undefined; error: string }

/** The values from which to choose, or null where anything of the type may be written. */
export function choicesOf(spec: InputSpec): unknown[] | null {
  return spec.enum ?? (spec.type === 'boolean' ? [true, false] : null)
}

/** A value as its field holds it. What is chosen is written as JSON, so that `1` and `"1"` are two choices. */
export function textOf(spec: InputSpec, value: unknown): string {
  if (value === null || value === undefined) return ''
  if (choicesOf(spec)) return JSON.stringify(value)
  return spec.type === 'array' || spec.type === 'object' ? readable(value) : String(value)
}

/** JSON on one line, or on many where one would be long. */
function readable(value: unknown): string {
  const line = JSON.stringify(value)
  return line.length <= LINE ? line : JSON.stringify(value, null, 2)
}

/** What the fields hold: what was written into them, as far as the file as it is by now takes it, or the defaults. */
export function textsOf(inputs: Record<string, InputSpec>, written: Record<string, string>): Record<string, string> {
  const kept = new Map(Object.entries(written))
  const text = (name: string, spec: InputSpec) => {
    const own = kept.get(name)
    return own !== undefined && canHold(spec, own) ? own : textOf(spec, spec.default)
  }
  return Object.fromEntries(Object.entries(inputs).map(([name, spec]) => [name, text(name, spec)]))
}

/** Whatever is written can be mended; what is chosen must be there to be chosen. */
function canHold(spec: InputSpec, text: string): boolean {
  const choices = choicesOf(spec)
  return choices === null || text === '' || choices.some((choice) => textOf(spec, choice) === text)
}

/** Reads one field; an empty one gives no value, for which the workflow's default stands. */
export function readInput(spec: InputSpec, text: string): Reading {
  const isEmpty = spec.type === 'string' ? text === '' : text.trim() === ''
  if (isEmpty) return spec.required && (spec.default ?? null) === null ? { error: texts.missing } : {}
  if (choicesOf(spec)) return { value: JSON.parse(text) as unknown }
  return READERS[spec.type](text, spec)
}

export interface Inputs {
  values: Record<string, unknown>
  errors: Record<string, string>
}

export function readInputs(inputs: Record<string, InputSpec>, written: Record<string, string>): Inputs {
  const read: Inputs = { values: {}, errors: {} }
  for (const [name, spec] of Object.entries(inputs)) {
    const { value, error } = readInput(spec, written[name] ?? '')
    if (error !== undefined) read.errors[name] = error
    else if (value !== undefined) read.values[name] = value
  }
  return read
}

const READERS: Record<InputSpec['type'], (text: string, spec: InputSpec) => Reading> = {
  string: (text) => ({ value: text }),
  boolean: (text) => ({ value: text === 'true' }),
  integer: (text, spec) => {
    if (!INTEGER.test(text.trim())) return { error: texts.notInteger }
    const value = Number(text)
    return Number.isSafeInteger(value) ? within(spec, value) : { error: texts.tooLarge }
  },
  number: (text, spec) => {
    const value = Number(text)
    return NUMBER.test(text.trim()) && Number.isFinite(value) ? within(spec, value) : { error: texts.notNumber }
  },
  array: (text) => readJson(text, Array.isArray, texts.notArray),
  object: (text) => readJson(text, isObject, texts.notObject),
}

function within({ minimum, maximum }: InputSpec, value: number): Reading {
  if (typeof minimum === 'number' && value < minimum) return { error: texts.least(minimum) }
  if (typeof maximum === 'number' && value > maximum) return { error: texts.most(maximum) }
  return { value }
}

function readJson(text: string, isRight: (value: unknown) => boolean, otherwise: string): Reading {
  try {
    const value = JSON.parse(text) as unknown
    return isRight(value) ? { value } : { error: otherwise }
  } catch (error) {
    return { error: texts.notJson(error instanceof Error ? error.message : String(error)) }
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
