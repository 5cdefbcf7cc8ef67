import { useEffect, useId, useRef, type KeyboardEvent, type ReactNode } from 'react'

export interface Tab {
  id: string
  name: ReactNode
  content: () => ReactNode
}

interface Props {
  label: string
  tabs: Tab[]
  selected: string
  onSelect: (id: string) => void
}

/** How much of the tab before it can be seen. */
const LEAD_PX = 48

/** Tabs after the pattern of the ARIA practices: arrows move, and what is focused is shown. */
export function Tabs({ label, tabs, selected, onSelect }: Props) {
  const base = useId()
  const list = useRef<HTMLDivElement>(null)
  const place = Math.max(0, tabs.findIndex((tab) => tab.id === selected))

  // Where there are more tabs than fit, the one that is shown is within sight; the page itself stays where it is.
  useEffect(() => {
    const tab = list.current?.querySelectorAll<HTMLElement>('[role=tab]')[place]
    if (tab) list.current?.scrollTo({ left: tab.offsetLeft - list.current.offsetLeft - LEAD_PX })
  }, [place])

  function move(event: KeyboardEvent) {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 }
    const step = steps[event.key]
    if (step === undefined) return
    event.preventDefault()
    const next = (place + step + tabs.length) % tabs.length
    onSelect(tabs[next]!.id)
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus()
  }

  return (
    <>
      <div className="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map((tab, index) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`${base}-${tab.id}`}
            aria-selected={index === place}
            aria-controls={`${base}-panel`}
            tabIndex={index === place ? 0 : -1}
            onClick={() => onSelect(tab.id)}
          >
            {tab.name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${tabs[place]!.id}`}>
        {tabs[place]!.content()}
      </div>
    </>
  )
}
