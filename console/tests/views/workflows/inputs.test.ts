import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { InputSpec } from '../../../src/api/model'
import { choicesOf, readInput, readInputs, textOf, textsOf } from '../../../src/views/workflows/inputs'

type Type = InputSpec['type']
const TYPES: Type[] = ['string', 'integer', 'number', 'boolean', 'array', 'object']

const spec = (type: Type, more: Partial<InputSpec> = {}): InputSpec => ({ type, required: false, ...more })

/** Reads a text that is right. */
function valueOf(input: InputSpec, text: string): unknown {
  const { value, error } = readInput(input, text)
  assert.equal(error, undefined, text)
  return value
}

/** Reads a text that is wrong. */
function errorOf(input: InputSpec, text: string): string {
  const { value, error } = readInput(input, text)
  assert.equal(value, undefined, text)
  assert.ok(error, `${text} is taken for right`)
  return error
}

test('a text is taken as it is', () => {
  for (const text of ['a', ' ', ' a b ', '17', 'true', 'null', '{}']) assert.equal(valueOf(spec('string'), text), text)
})

test('whole numbers are read, and nothing else', () => {
  const right: [string, number][] = [
    ['0', 0],
    [' 17 ', 17],
    ['+5', 5],
    ['-3', -3],
    ['007', 7],
    ['9007199254740991', 9007199254740991],
  ]
  for (const [text, value] of right) assert.equal(valueOf(spec('integer'), text), value)
  for (const text of ['1.0', '1.5', '1e3', '0x10', 'one', '1 000', '1,000', '--1', 'NaN', 'Infinity', '[1]']) {
    assert.equal(errorOf(spec('integer'), text), 'This is not a whole number.')
  }
})

test('a whole number that would not be kept exactly is not sent', () => {
  for (const text of ['9007199254740992', '-9007199254740993', '1'.repeat(400)]) {
    assert.match(errorOf(spec('integer'), text), /more digits than can be kept/)
  }
})

test('numbers are read, and nothing else', () => {
  const right: [string, number][] = [
    ['0', 0],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['5.', 5],
    [' -1e-3 ', -0.001],
    ['+2E+2', 200],
  ]
  for (const [text, value] of right) assert.equal(valueOf(spec('number'), text), value)
  for (const text of ['.', 'e5', '1,5', '0x10', 'NaN', 'Infinity', '-Infinity', '1e400', '1 2', 'true']) {
    assert.equal(errorOf(spec('number'), text), 'This is not a number.')
  }
})

test('numbers stay within their range, whose ends belong to it', () => {
  for (const type of ['integer', 'number'] as const) {
    const bounded = spec(type, { minimum: 0, maximum: 10 })
    for (const text of ['0', '10', '5']) assert.equal(valueOf(bounded, text), Number(text))
    assert.match(errorOf(bounded, '-1'), /at least 0/)
    assert.match(errorOf(bounded, '11'), /at most 10/)
    assert.equal(valueOf(spec(type, { minimum: null, maximum: null }), '-99'), -99)
  }
})

test('lists and objects are JSON of their kind', () => {
  assert.deepEqual(valueOf(spec('array'), ' [1, "a", null] '), [1, 'a', null])
  assert.deepEqual(valueOf(spec('object'), '{"a": {"b": []}}'), { a: { b: [] } })
  for (const text of ['{}', '1', '"a"', 'null', 'true']) assert.match(errorOf(spec('array'), text), /must be a list/)
  for (const text of ['[]', '1', '"a"', 'null', 'true'])
    assert.match(errorOf(spec('object'), text), /must be an object/)
  for (const text of ['[1,', 'a', '[1] 2', "{'a': 1}"]) {
    assert.match(errorOf(spec('array'), text), /not JSON: ./)
    assert.match(errorOf(spec('object'), text), /not JSON: ./)
  }
})

test('what is chosen is a value of the list, of whatever type', () => {
  const choices = [1, '1', true, 'true', 1.5, 'a "b"', [1], { a: 1 }]
  const chosen = spec('string', { enum: choices })
  const texts = choices.map((value) => textOf(chosen, value))
  assert.equal(new Set(texts).size, choices.length, 'each choice has a text of its own')
  choices.forEach((value, place) => assert.deepEqual(valueOf(chosen, texts[place]!), value))
  assert.deepEqual(choicesOf(spec('boolean')), [true, false])
  assert.equal(valueOf(spec('boolean'), textOf(spec('boolean'), false)), false)
  assert.equal(valueOf(spec('boolean'), textOf(spec('boolean'), true)), true)
  for (const type of TYPES.filter((each) => each !== 'boolean')) assert.equal(choicesOf(spec(type)), null)
})

test('an empty field gives no value, and is wrong only where one is required', () => {
  for (const type of TYPES) {
    const empty = type === 'string' ? [''] : ['', '  ', '\n']
    for (const text of empty) {
      assert.deepEqual(readInput(spec(type), text), {})
      assert.equal(errorOf(spec(type, { required: true }), text), 'This is required.')
      assert.equal(errorOf(spec(type, { required: true, default: null }), text), 'This is required.')
      assert.deepEqual(readInput(spec(type, { required: true, default: 0 }), text), {}, 'the default stands for it')
    }
  }
  assert.equal(errorOf(spec('string', { required: true, enum: ['a'] }), ''), 'This is required.')
})

test('a form begins with the defaults, and reads them as they are', () => {
  const long = { area: 'x'.repeat(80), list: [1, 2] }
  const inputs: Record<string, InputSpec> = {
    text: spec('string', { default: 'a' }),
    quoted: spec('string', { default: '"a"' }),
    number: spec('number', { default: -0.5 }),
    whole: spec('integer', { default: 0 }),
    no: spec('boolean', { default: false }),
    list: spec('array', { default: [] }),
    long: spec('object', { default: long }),
    chosen: spec('integer', { enum: [1, 2], default: 2 }),
    nothing: spec('string', { default: null }),
    unsaid: spec('array'),
  }
  const texts = textsOf(inputs, {})
  assert.equal(texts.nothing, '')
  assert.equal(texts.unsaid, '')
  assert.equal(texts.list, '[]')
  assert.ok(texts.long!.includes('\n'), 'what is long is on several lines')
  assert.deepEqual(readInputs(inputs, texts), {
    values: { text: 'a', quoted: '"a"', number: -0.5, whole: 0, no: false, list: [], long, chosen: 2 },
    errors: {},
  })
})

test('what is written stays when the file has changed, as far as it can', () => {
  const before = { kept: 'k', gone: 'g', chosen: '"b"', other: '"b"', '': '' }
  const inputs = {
    kept: spec('integer', { default: 1 }),
    chosen: spec('string', { enum: ['a', 'b'], default: 'a' }),
    other: spec('string', { enum: ['a', 'c'], default: 'a' }),
    constructor: spec('string', { default: 'new' }),
  }
  assert.deepEqual(textsOf(inputs, before), { kept: 'k', chosen: '"b"', other: '"a"', constructor: 'new' })
})

test('all inputs are read, those that are wrong and those that are right', () => {
  const inputs = { a: spec('integer'), b: spec('integer'), c: spec('string', { required: true }), d: spec('string') }
  assert.deepEqual(readInputs(inputs, { a: '1', b: 'x', other: 'y' }), {
    values: { a: 1 },
    errors: { b: 'This is not a whole number.', c: 'This is required.' },
  })
})
