import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'

import { grid, land } from '../../src/map/coast'
import { answerWith, json } from '../browser'

const ATLAS = new URL('../../node_modules/world-atlas/land-50m.json', import.meta.url)

test('land that was not found is asked for again, and then kept', async (context) => {
  answerWith(context, () => json({}, 404))
  await assert.rejects(land(), /were not found \(404\)/)
  const atlas = await readFile(ATLAS, 'utf8')
  const asked = answerWith(context, () => new Response(atlas))
  const found = await land()
  assert.equal(await land(), found)
  assert.equal(asked.length, 1)
})

test('on a flat map, no coast leaps across the world and every land is closed', async (context) => {
  const atlas = await readFile(ATLAS, 'utf8')
  answerWith(context, () => new Response(atlas))
  const { areas, coasts } = await land()
  assert.ok(areas.geometry.coordinates.length > 1000)
  for (const line of coasts.geometry.coordinates) {
    line.slice(1).forEach(([longitude], place) => assert.ok(Math.abs(longitude! - line[place]![0]!) <= 180))
  }
  for (const ring of areas.geometry.coordinates.flat()) {
    assert.deepEqual(ring[0], ring.at(-1))
    const longitudes = ring.map(([longitude]) => longitude!)
    assert.ok(Math.abs(Math.min(...longitudes) + Math.max(...longitudes)) / 2 <= 180)
    for (const [, latitude] of ring) assert.ok(Math.abs(latitude!) <= 90)
  }
})

test('the grid has meridians and parallels within the map', () => {
  const lines = grid().geometry.coordinates
  assert.equal(lines.length, 13 + 5)
  for (const [longitude, latitude] of lines.flat()) {
    assert.ok(Math.abs(longitude!) <= 180 && Math.abs(latitude!) <= 85)
  }
})
