import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import { Loading, ProblemNotice } from './notices'

interface Props<Data> {
  query: UseQueryResult<Data, Error>
  children: (data: Data) => ReactNode
}

/** What a query gave. Where it fails that is told, and what it gave before stays. */
export function Answer<Data>({ query, children }: Props<Data>) {
  const { data, error, refetch } = query
  return (
    <>
      {error && <ProblemNotice error={error} onRetry={() => void refetch()} />}
      {data !== undefined ? children(data) : !error && <Loading />}
    </>
  )
}
