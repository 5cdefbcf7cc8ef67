/** After an upgrade the parts of an open console are gone from the server: it has to be loaded anew. */

import { keep, kept } from '../ui/storage'

const PLACE = 'graticule-reloaded-at'
/** What is missing after so short a time is missing for another reason, and loading would go on for ever. */
const AT_MOST_EVERY_MS = 60_000

export function reloadWhenPartsAreGone(): void {
  window.addEventListener('vite:preloadError', () => {
    const before = Number(kept('sessionStorage', PLACE))
    const isRecent = Date.now() - before < AT_MOST_EVERY_MS
    if (!isRecent && keep('sessionStorage', PLACE, String(Date.now()))) window.location.reload()
  })
}
