import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { InputSpec } from '../../../src/api/model'
import { Problem } from '../../../src/api/problem'
import { BLANK, inputField, refusedFields, submissionOf } from '../../../src/views/workflows/submission'

const INPUTS: Record<string, InputSpec> = {
  priority: { type: 'integer', required: true },
  label: { type: 'string', required: false, default: 'x' },
}

test('a form that nobody has filled in lacks what is required, and no more', () => {
  const { errors } = submissionOf('w', INPUTS, BLANK)
  assert.deepEqual(Object.keys(errors), [inputField('priority')])
  assert.deepEqual(submissionOf('w', {}, BLANK), {
    submission: { workflow_id: 'w', input_params: {}, priority: 0, correlation_id: null, idempotency_key: null },
    errors: {},
  })
})

test('what is written is submitted', () => {
  const written = {
    inputs: { priority: '3', label: '' },
    priority: ' 10 ',
    correlationId: ' c ',
    idempotencyKey: '  ',
    resume: true,
  }
  assert.deepEqual(submissionOf('w', INPUTS, written), {
    submission: {
      workflow_id: 'w',
      input_params: { priority: 3 },
      priority: 10,
      correlation_id: 'c',
      idempotency_key: null,
    },
    errors: {},
  })
})

test('the priority of the job is not an input that is called so', () => {
  for (const priority of ['', '11', '-1', 'high', '1.5']) {
    const written = { ...BLANK, inputs: { priority: '3' }, priority }
    assert.deepEqual(Object.keys(submissionOf('w', INPUTS, written).errors), ['priority'], priority)
  }
  assert.notEqual(inputField('priority'), 'priority')
})

test('what the gateway found wrong stands at its field', () => {
  const faults = [
    { loc: ['body', 'input_params', 'priority'], message: 'one' },
    { loc: ['body', 'priority'], message: 'two' },
    { loc: ['body', 'input_params'], message: 'three' },
    { loc: ['body', 'input_params', 'list', 0], message: 'four' },
  ]
  assert.deepEqual(refusedFields(new Problem(422, 'invalid_input', 'No.', null, faults)), {
    [inputField('priority')]: 'one',
    priority: 'two',
    input_params: 'three',
    [inputField('list')]: 'four',
  })
  for (const other of [null, undefined, new Error('No.'), new Problem(409, 'conflict', 'No.')]) {
    assert.deepEqual(refusedFields(other), {})
  }
})
