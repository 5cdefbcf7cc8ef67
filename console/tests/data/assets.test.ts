import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import { readHistory } from '../../src/data/assets'
import { answerWith, json } from '../browser'

/** A gateway that keeps events of an asset, two on a page. */
function keeping(context: TestContext, events: number[]) {
  const asked = answerWith(context, ({ url }) => {
    const first = Number(new URL(url).searchParams.get('cursor') ?? 0)
    const items = events.slice(first, first + 2).map((event_id) => ({ event_id }))
    return json({ items, next: first + 2 < events.length ? String(first + 2) : null })
  })
  return () => asked.splice(0).map(({ url }) => new URL(url).searchParams.get('cursor'))
}

const idsOf = (pages: Awaited<ReturnType<typeof readHistory>>) =>
  pages.flatMap(({ items }) => items.map(({ event_id }) => event_id))

test('the history is read to its end, and from its last page on when it is read again', async (context) => {
  const events = [1, 2, 3]
  const cursors = keeping(context, events)
  const first = await readHistory('a1', [])
  assert.deepEqual(idsOf(first), [1, 2, 3])
  assert.deepEqual(cursors(), [null, '2'])
  events.push(4, 5, 6, 7)
  const second = await readHistory('a1', first)
  assert.deepEqual(idsOf(second), [1, 2, 3, 4, 5, 6, 7])
  assert.deepEqual(cursors(), ['2', '4', '6'])
  assert.deepEqual(idsOf(await readHistory('a1', second)), idsOf(second))
  assert.deepEqual(idsOf(first), [1, 2, 3], 'what was given before stays as it is')
})

test('an asset to which nothing happened has an empty history', async (context) => {
  keeping(context, [])
  const found = await readHistory('a1', [])
  assert.deepEqual(idsOf(found), [])
  assert.deepEqual(idsOf(await readHistory('a1', found)), [])
})
