/** What lives in the address, so that it survives a reload and can be shared. */

import { useCallback } from 'react'
import { useLocation, useSearchParams } from 'react-router'

import { passedPages } from './passedPages'

/** Gives the parameters of the address, and what changes some of them; `null` takes one away. */
export function useAddress(): [URLSearchParams, (changes: Record<string, string | null>) => void] {
  const [parameters, setParameters] = useSearchParams()
  const pages = passedPages(useLocation().state)
  const change = useCallback(
    (changes: Record<string, string | null>) =>
      setParameters(changed(changes), { replace: true, preventScrollReset: true, state: { pages } }),
    [setParameters, pages],
  )
  return [parameters, change]
}

/** Begins with what the address says by now: what was rendered last may be behind, and bring back what was removed. */
function changed(changes: Record<string, string | null>): URLSearchParams {
  const after = new URLSearchParams(window.location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') after.delete(name)
    else after.set(name, value)
  }
  return after
}
