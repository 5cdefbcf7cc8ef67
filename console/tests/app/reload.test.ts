import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import { reloadWhenPartsAreGone } from '../../src/app/reload'
import { stopTheClock } from '../clock'

/** A window that counts how often it is loaded anew; `miss` is what Vite tells when a part is not there. */
function windowWith(context: TestContext, storage: Partial<Storage>) {
  const told = { reloads: 0, miss: () => undefined as void }
  const window = {
    addEventListener: (_: string, listener: () => void) => (told.miss = listener),
    sessionStorage: storage,
    location: { reload: () => (told.reloads += 1) },
  }
  Object.assign(globalThis, { window })
  context.after(() => Reflect.deleteProperty(globalThis, 'window'))
  reloadWhenPartsAreGone()
  return told
}

function storing(): Partial<Storage> {
  const kept = new Map<string, string>()
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
  }
}

test('a console whose parts are gone is loaded anew, but not again and again', async (context) => {
  const pass = stopTheClock(context)
  await pass(100_000)
  const told = windowWith(context, storing())
  told.miss()
  assert.equal(told.reloads, 1)
  told.miss()
  await pass(50_000)
  told.miss()
  assert.equal(told.reloads, 1)
  await pass(20_000)
  told.miss()
  assert.equal(told.reloads, 2)
})

test('where the browser keeps nothing, a console is never loaded anew by itself', async (context) => {
  const refuse = () => {
    throw new Error('The storage is closed.')
  }
  const told = windowWith(context, { getItem: refuse, setItem: refuse })
  told.miss()
  assert.equal(told.reloads, 0)
})
