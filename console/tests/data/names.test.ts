import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Platform } from '../../src/api/model'
import { datasetName, orderedRefs, partnerOf } from '../../src/data/names'

const partner = { platform_id: 'demo', required_refs: ['dataset', 'resource'], optional_refs: ['edition'] } as Platform
const dataset = {
  platform_id: 'demo',
  platform_refs: { zone: 3, edition: 'b', resource: 'relief', dataset: 'island' },
}

test('references that identify a dataset come first, in the order of the partner', () => {
  assert.deepEqual(
    orderedRefs(dataset.platform_refs, partner).map(([name]) => name),
    ['dataset', 'resource', 'edition', 'zone'],
  )
  assert.equal(datasetName(dataset, partner), 'island / relief / b / 3')
})

test('without its partner, a dataset has the same references as they are', () => {
  assert.equal(datasetName(dataset), '3 / b / relief / island')
  assert.equal(datasetName({ ...dataset, platform_refs: {} }), '')
})

test('the partner of a dataset is found among those that are known', () => {
  assert.equal(partnerOf(dataset, [{ ...partner, platform_id: 'other' }, partner]), partner)
  assert.equal(partnerOf(dataset, []), undefined)
  assert.equal(partnerOf(dataset, undefined), undefined)
})
