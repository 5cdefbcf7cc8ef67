/** Runs the tests of the console's functions: `npm test`. Vite loads them as it loads the console, Node runs them. */

import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { createServer } from 'vite'

// Times are those of one place, wherever the tests run; its hours begin at the half hours of UTC.
process.env.TZ = 'Asia/Kolkata'

/** Loads every file of tests, which then wait for their turn. */
async function load() {
  const vite = await createServer({
    root: fileURLToPath(new URL('..', import.meta.url)),
    configFile: false,
    appType: 'custom',
    logLevel: 'warn',
    optimizeDeps: { noDiscovery: true },
    server: { middlewareMode: true, hmr: false, ws: false, watch: null },
  })
  const { runner } = vite.environments.ssr
  await runner.import('/tests/browser.ts') // before anything takes hold of `fetch`
  await runner.import('/tests/all.ts')
}

const loaded = load()
// The first test holds up the others: some of them stop the clock, and Vite with it.
test('all tests are loaded', () => loaded)
