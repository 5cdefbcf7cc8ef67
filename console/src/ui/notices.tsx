import type { ReactNode } from 'react'

import { Problem } from '../api/problem'
import { shared } from '../texts/shared'
import { Button } from './Button'

const TONES = { info: 'busy', good: 'good', warning: 'warn', error: 'bad' } as const

interface NoticeProps {
  kind: keyof typeof TONES
  /** Whether what is around it tells of it when it comes. */
  isWithinStatus?: boolean
  children: ReactNode
}

export function Notice({ kind, isWithinStatus = false, children }: NoticeProps) {
  const role = kind === 'error' ? 'alert' : 'status'
  return (
    <div className={`notice tone-${TONES[kind]}`} role={isWithinStatus ? undefined : role}>
      {children}
    </div>
  )
}

/** Tells what was refused and how to mend it, as the gateway says it. */
export function ProblemNotice({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = error instanceof Problem ? error : null
  return (
    <Notice kind="error">
      <span>{error instanceof Error ? error.message : shared.refused}</span>
      {problem?.hint && <span className="notice-hint">{problem.hint}</span>}
      {problem && problem.faults.length > 0 && (
        <ul>
          {problem.faults.map((fault) => (
            <li key={fault.loc.join('.')}>
              <code>{fault.loc.slice(1).join('.')}</code> {fault.message}
            </li>
          ))}
        </ul>
      )}
      {onRetry && <Button onClick={onRetry}>{shared.tryAgain}</Button>}
    </Notice>
  )
}

export function Loading() {
  return (
    <p className="loading" role="status">
      {shared.loading}
    </p>
  )
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="empty">{children}</p>
}
