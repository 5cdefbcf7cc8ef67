import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Platform } from '../../../src/api/model'
import { changeOf, formOf, namesIn, newPlatform } from '../../../src/views/operations/platformForm'

const platform = {
  platform_id: 'demo',
  display_name: 'Demo',
  description: null,
  required_refs: ['dataset', 'resource'],
  optional_refs: [],
  version_ref: 'version',
  source_containers: ['bronze/demo/'],
} as unknown as Platform

test('names are separated by commas or spaces', () => {
  assert.deepEqual(namesIn(' a,b ,  c\nd,,'), ['a', 'b', 'c', 'd'])
  assert.deepEqual(namesIn('  , '), [])
})

test('a platform is added as it is written', () => {
  const empty = formOf(null)
  const form = { ...empty, id: ' demo ', name: ' Demo ', description: ' ', required: 'a, b', version: ' v ', sources: ' ' }
  assert.deepEqual(newPlatform(form), {
    platform_id: 'demo',
    display_name: 'Demo',
    description: null,
    required_refs: ['a', 'b'],
    optional_refs: [],
    version_ref: 'v',
    four_eyes: false,
  })
  const sources = { source_containers: ['bronze/a b/', 'demo'] }
  assert.deepEqual(newPlatform({ ...form, sources: ' bronze/a b/ , demo,' }), { ...newPlatform(form), ...sources })
  assert.deepEqual(new Set(Object.values(formOf(null))), new Set(['', false]))
})

test('only what is different is changed', () => {
  const form = formOf(platform)
  assert.deepEqual(changeOf(platform, form), {})
  assert.deepEqual(changeOf(platform, { ...form, name: 'Demo ', description: ' ' }), {})
  assert.deepEqual(changeOf(platform, { ...form, name: 'Other' }), { display_name: 'Other' })
  assert.deepEqual(changeOf(platform, { ...form, required: 'dataset' }), { required_refs: ['dataset'] })
  assert.deepEqual(changeOf(platform, { ...form, optional: 'edition' }), { optional_refs: ['edition'] })
  assert.deepEqual(changeOf(platform, { ...form, version: 'edition' }), { version_ref: 'edition' })
  assert.deepEqual(changeOf(platform, { ...form, sources: 'demo' }), { source_containers: ['demo'] })
  assert.deepEqual(changeOf(platform, { ...form, fourEyes: true }), { four_eyes: true })
})

test('a description can be taken away', () => {
  const described = { ...platform, description: 'Old.' }
  assert.deepEqual(changeOf(described, { ...formOf(described), description: '' }), { description: '' })
})
