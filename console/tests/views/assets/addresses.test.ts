import assert from 'node:assert/strict'
import { test } from 'node:test'

import { grouped } from '../../../src/views/assets/addresses'

test('addresses for the public are told apart, under the names that services have within', () => {
  const internal = { tiles: 'http://in/tiles', stac: 'http://in/stac' }
  const found = grouped([
    { version_ordinal: 1, service_urls: { ...internal, external_tiles: 'https://out/tiles' } },
    { version_ordinal: 0, service_urls: { tiles: 'http://in/tiles?version=0' } },
  ])
  assert.deepEqual(found.internal, [
    { service: 'tiles', ordinal: 1, url: 'http://in/tiles' },
    { service: 'stac', ordinal: 1, url: 'http://in/stac' },
    { service: 'tiles', ordinal: 0, url: 'http://in/tiles?version=0' },
  ])
  assert.deepEqual(found.public, [{ service: 'tiles', ordinal: 1, url: 'https://out/tiles' }])
  assert.deepEqual(grouped([]), { internal: [], public: [] })
})
