/** A job as the form asks for it, and what the gateway found wrong with it, field by field. */

import type { components } from '../../api/gateway'
import type { InputSpec } from '../../api/model'
import { Problem } from '../../api/problem'
import { readInput, readInputs, textsOf } from './inputs'

type Submission = components['schemas']['Submission']

/** The most letters that names and keys may have. */
export const SHORT_MAX = 64

export interface Written {
  /** By name; what nobody has written is not there. */
  inputs: Record<string, string>
  priority: string
  correlationId: string
  idempotencyKey: string
  /** Whether a job that is found and has failed goes on. */
  resume: boolean
}

/** Errors by the names of fields; those of inputs have a dot in front, since an input may be called anything. */
export type Errors = Record<string, string>

const PRIORITY: InputSpec = { type: 'integer', required: true, minimum: 0, maximum: 10 }

export const BLANK: Written = { inputs: {}, priority: '0', correlationId: '', idempotencyKey: '', resume: false }

export function submissionOf(
  workflowId: string,
  inputs: Record<string, InputSpec>,
  written: Written,
): { submission: Submission; errors: Errors } {
  const { values, errors } = readInputs(inputs, textsOf(inputs, written.inputs))
  const priority = readInput(PRIORITY, written.priority)
  const submission = {
    workflow_id: workflowId,
    input_params: values,
    priority: typeof priority.value === 'number' ? priority.value : 0,
    correlation_id: written.correlationId.trim() || null,
    idempotency_key: written.idempotencyKey.trim() || null,
  }
  const found = Object.fromEntries(Object.entries(errors).map(([name, error]) => [inputField(name), error]))
  return { submission, errors: priority.error ? { ...found, priority: priority.error } : found }
}

export function inputField(name: string): string {
  return `.${name}`
}

/** Gives what the gateway found wrong, at the fields that it names. */
export function refusedFields(error: unknown): Errors {
  if (!(error instanceof Problem)) return {}
  return Object.fromEntries(
    error.faults.map(({ loc: [, name, input], message }) => [
      name === 'input_params' && input !== undefined ? inputField(String(input)) : String(name),
      message,
    ]),
  )
}
