/** Signs for the types of nodes and for their states, so that no colour stands alone. */

import type { ReactNode } from 'react'

import type { NodeStatus } from '../api/model'
import type { NodeType } from './definition'

const TYPES: Record<NodeType, ReactNode> = {
  start: <path d="M5 3.5v9l7-4.5z" fill="currentColor" stroke="none" />,
  end: <rect x="4" y="4" width="8" height="8" rx="1" fill="currentColor" stroke="none" />,
  task: <rect x="2.5" y="4" width="11" height="8" rx="1.5" />,
  conditional: <path d="M8 2 14 8 8 14 2 8z" />,
  fan_out: <path d="M8 2v4M8 6 3 13M8 6v7M8 6l5 7" />,
  fan_in: <path d="M3 3l5 7M8 3v7M13 3l-5 7M8 10v4" />,
}

const STATES: Record<NodeStatus, ReactNode> = {
  pending: <circle cx="8" cy="8" r="5" strokeDasharray="2 2.6" />,
  ready: <path d="M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3M8 5.5V8l2 1.5" />,
  dispatched: <path d="M3 8h9M8.5 4.5 12 8l-3.5 3.5" />,
  running: (
    <>
      <circle cx="8" cy="8" r="5" opacity="0.3" />
      <path className="graph-turning" d="M8 3a5 5 0 0 1 5 5" />
    </>
  ),
  completed: <path d="M3 8.5 6.5 12 13 4.5" />,
  failed: <path d="M4 4l8 8M12 4l-8 8" />,
  skipped: <path d="M3 4.5 7 8l-4 3.5M8 4.5 12 8l-4 3.5" />,
}

function Icon({ children }: { children: ReactNode }) {
  return (
    <svg className="graph-icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      {children}
    </svg>
  )
}

export function TypeIcon({ type }: { type: NodeType }) {
  return <Icon>{TYPES[type]}</Icon>
}

export function StateIcon({ status }: { status: NodeStatus }) {
  return <Icon>{STATES[status]}</Icon>
}
