/** Lists in pages: a cursor leads to the next one, and those passed are remembered. */

import { useLocation, useNavigate } from 'react-router'

import { shared } from '../texts/shared'
import { Button } from './Button'
import { count } from './format'
import { passedPages } from './passedPages'

export interface Pages {
  cursor: string | undefined
  number: number
  forward: (next: string) => void
  back: () => void
  reset: () => void
}

/** Where in a list one is; another `filter` begins it anew. It stands in the history: Back and a reload lead there. */
export function usePages(filter: string): Pages {
  const navigate = useNavigate()
  const { search, hash, state } = useLocation()
  const passed = passedPages(state)
  const cursors = passed?.filter === filter ? passed.cursors : []
  const become = (next: string[]) =>
    void navigate({ search, hash }, { replace: true, state: { ...state, pages: { filter, cursors: next } } })
  return {
    cursor: cursors.at(-1),
    number: cursors.length + 1,
    // While a page is on its way, the one before it is still shown, and leads to it once more.
    forward: (next) => next !== cursors.at(-1) && become([...cursors, next]),
    back: () => become(cursors.slice(0, -1)),
    reset: () => become([]),
  }
}

interface PagerProps {
  pages: Pages
  next: string | null | undefined
  /** Told when the next page is likely to be asked for, so that it can be there already. */
  onApproach?: (next: string) => void
  /** What leads to the first page, the one before and the one after; by default of a list with the newest first. */
  words?: { first: string; before: string; after: string }
}

export function Pager({ pages, next, onApproach, words = shared.newestFirst }: PagerProps) {
  if (pages.number === 1 && !next) return null
  const approach = () => next && onApproach?.(next)
  return (
    <nav className="pager" aria-label={shared.page}>
      <span className="soft">
        {shared.page} {count(pages.number)}
      </span>
      <Button disabled={pages.number === 1} onClick={pages.reset}>
        {words.first}
      </Button>
      <Button disabled={pages.number === 1} onClick={pages.back}>
        {words.before}
      </Button>
      <Button
        disabled={!next}
        onPointerEnter={approach}
        onFocus={approach}
        onClick={() => next && pages.forward(next)}
      >
        {words.after}
      </Button>
    </nav>
  )
}
