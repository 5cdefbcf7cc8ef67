import { createContext, use, useState, type ReactNode } from 'react'

const Context = createContext<(content: ReactNode) => void>(() => undefined)

/** Holds what must outlast the view that shows it, and the session too. */
export function Above({ children }: { children: ReactNode }) {
  const [content, setContent] = useState<ReactNode>(null)
  return (
    <Context value={setContent}>
      {children}
      {content}
    </Context>
  )
}

/** Gives what shows something above all views; `null` takes it away. */
export function useAbove(): (content: ReactNode) => void {
  return use(Context)
}
