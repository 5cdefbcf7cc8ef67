import { useEffect, useRef, useState, type ReactNode } from 'react'

import { shared } from '../texts/shared'

/** Lets what is too wide be scrolled; only then is there something to do here for those who use the keyboard. */
export function ScrollFrame({ label, children }: { label: string; children: ReactNode }) {
  const frame = useRef<HTMLDivElement>(null)
  const [isWide, setIsWide] = useState(false)

  useEffect(() => {
    const { current } = frame
    if (current === null) return
    const observer = new ResizeObserver(() => setIsWide(current.scrollWidth > current.clientWidth))
    for (const each of [current, ...current.children]) observer.observe(each)
    return () => observer.disconnect()
  }, [])

  const scrolls = { tabIndex: 0, role: 'region', 'aria-label': shared.scrollable(label) }
  return (
    <div className="table-frame" ref={frame} {...(isWide ? scrolls : {})}>
      {children}
    </div>
  )
}
