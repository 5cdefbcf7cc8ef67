/** One deed for many letters: they are dealt with one by one, and what became of each is kept. */

import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'

import { content, orchestrator } from '../../api/client'
import { shared } from '../../texts/shared'

export type LetterDeed = 'requeue' | 'discard'

export interface Outcome {
  id: string
  /** Why it was refused; null when it was done. */
  refusal: string | null
}

export interface Run {
  deed: LetterDeed
  total: number
  outcomes: Outcome[]
  isRunning: boolean
}

export interface Bulk {
  run: Run | null
  start(deed: LetterDeed, ids: string[]): void
  stop(): void
  dismiss(): void
}

export function dealWith(deed: LetterDeed, id: string): Promise<unknown> {
  const params = { path: { letter_id: id } }
  return deed === 'requeue'
    ? content(orchestrator.POST('/api/v1/dead-letters/{letter_id}/requeue', { params }))
    : content(orchestrator.POST('/api/v1/dead-letters/{letter_id}/discard', { params }))
}

async function outcomeOf(deed: LetterDeed, id: string): Promise<Outcome> {
  try {
    await dealWith(deed, id)
    return { id, refusal: null }
  } catch (problem) {
    return { id, refusal: problem instanceof Error ? problem.message : shared.refused }
  }
}

export function useBulk(): Bulk {
  const client = useQueryClient()
  const [run, setRun] = useState<Run | null>(null)
  const isWanted = useRef(false)
  // Whoever leaves the page does not see what becomes of the rest, so it is left as it is.
  useEffect(() => () => void (isWanted.current = false), [])

  async function work(deed: LetterDeed, ids: string[]) {
    const outcomes: Outcome[] = []
    isWanted.current = true
    for (const id of ids) {
      if (!isWanted.current) break
      setRun({ deed, total: ids.length, outcomes: [...outcomes], isRunning: true })
      outcomes.push(await outcomeOf(deed, id))
    }
    setRun({ deed, total: ids.length, outcomes, isRunning: false })
    await client.invalidateQueries({ queryKey: ['queues'] })
  }

  return {
    run,
    start: (deed, ids) => void work(deed, ids),
    stop: () => (isWanted.current = false),
    dismiss: () => setRun(null),
  }
}
