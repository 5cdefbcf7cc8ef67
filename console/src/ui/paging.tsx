/** Lists in pages: a cursor leads to the next one, and those passed are remembered. */

import { useState } from 'react'

import { shared } from '../texts/shared'
import { Button } from './Button'
import { count } from './format'

export interface Pages {
  cursor: string | undefined
  number: number
  forward: (next: string) => void
  back: () => void
  reset: () => void
}

/** Where in a list one is; another `filter` begins it anew. */
export function usePages(filter: string): Pages {
  const [passed, setPassed] = useState<{ filter: string; cursors: string[] }>({ filter, cursors: [] })
  const cursors = passed.filter === filter ? passed.cursors : []
  const become = (next: string[]) => setPassed({ filter, cursors: next })
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
}

export function Pager({ pages, next, onApproach }: PagerProps) {
  if (pages.number === 1 && !next) return null
  const approach = () => next && onApproach?.(next)
  return (
    <nav className="pager" aria-label={shared.page}>
      <span className="soft">
        {shared.page} {count(pages.number)}
      </span>
      <Button disabled={pages.number === 1} onClick={pages.reset}>
        {shared.newest}
      </Button>
      <Button disabled={pages.number === 1} onClick={pages.back}>
        {shared.newer}
      </Button>
      <Button
        disabled={!next}
        onPointerEnter={approach}
        onFocus={approach}
        onClick={() => next && pages.forward(next)}
      >
        {shared.older}
      </Button>
    </nav>
  )
}
