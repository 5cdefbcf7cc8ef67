import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

// For `npm run dev`: the gateway that answers the API.
const gateway = process.env.GRATICULE_GATEWAY ?? 'http://127.0.0.1:8000'

/** Lays a compressed copy beside each file that is worth it; the gateway gives it to browsers that take one. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    async writeBundle({ dir = '' }, bundle) {
      const names = Object.keys(bundle).filter((name) => /\.(js|css|json)$/.test(name))
      await Promise.all(
        names.map(async (name) => {
          const file = join(dir, name)
          await writeFile(`${file}.gz`, gzipSync(await readFile(file), { level: 9 }))
        }),
      )
    },
  }
}

export default defineConfig({
  plugins: [react(), compressed()],
  build: {
    outDir: '../src/graticule/console/static',
    emptyOutDir: true,
    assetsDir: 'static/hashed', // apart from public/static: these never change under their names
    assetsInlineLimit: 0, // the content security policy lets nothing be inlined
    target: 'es2022',
    license: { fileName: 'static/licenses.md' }, // of all that is bundled, as they ask for
    chunkSizeWarningLimit: 1500, // MapLibre, which is loaded only where there is a map
  },
  worker: { format: 'es' },
  server: { proxy: { '/api': gateway } },
})
