import assert from 'node:assert/strict'
import { test } from 'node:test'

import { outputsOf, storedFiles } from '../../../src/views/assets/outputs'

test('what a revision left behind is told in one order, whatever that of its document', () => {
  const one = outputsOf({ blob_path: 'silver/a.tif', table_name: null, stac_item_id: 'item', other: 'x' })
  const other = outputsOf({ stac_item_id: 'item', blob_path: 'silver/a.tif' })
  assert.deepEqual(one, other)
  assert.deepEqual(new Set(one.map(({ value }) => value)), new Set(['silver/a.tif', 'item']))
  for (const { name } of one) assert.doesNotMatch(name, /_/)
  assert.deepEqual(outputsOf({}), [])
})

test('of the files of an item, those are stored that have no address', () => {
  assert.deepEqual(
    storedFiles({
      data: { href: 'urn:graticule:blob:silver/a.tif', 'file:size': 12 },
      preview: { href: 'urn:graticule:blob:silver/a.png' },
      tiles: { href: 'https://services/tiles/a' },
    }),
    [
      { path: 'silver/a.tif', size: 12 },
      { path: 'silver/a.png', size: null },
    ],
  )
})
