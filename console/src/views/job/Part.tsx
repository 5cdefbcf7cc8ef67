import type { ReactNode } from 'react'

/** A part of a panel, under a heading of its own. */
export function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="job-part">
      <h3>{title}</h3>
      {children}
    </section>
  )
}
