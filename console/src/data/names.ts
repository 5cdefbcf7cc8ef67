/** How datasets are called, the same in every view. */

import { useQuery } from '@tanstack/react-query'
import { useCallback } from 'react'

import type { Platform } from '../api/model'
import { platforms } from './platforms'

/** What an asset, a version that waits, and all else of a dataset tell of it. */
export interface Dataset {
  platform_id: string
  platform_refs: Record<string, unknown>
}

/** The partner's own references, those first that identify a dataset. The database keeps them in no order of theirs. */
export function orderedRefs(refs: Dataset['platform_refs'], partner?: Platform): [string, string][] {
  const order = [...(partner?.required_refs ?? []), ...(partner?.optional_refs ?? [])]
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length)
  return Object.entries(refs)
    .toSorted(([one], [other]) => place(one) - place(other))
    .map(([name, value]) => [name, String(value)])
}

/** The references as one name: `island / relief`. */
export function datasetName(dataset: Dataset, partner?: Platform): string {
  return orderedRefs(dataset.platform_refs, partner)
    .map(([, value]) => value)
    .join(' / ')
}

export function partnerOf(dataset: Dataset, partners: Platform[] | undefined): Platform | undefined {
  return partners?.find(({ platform_id }) => platform_id === dataset.platform_id)
}

/** Gives what names datasets; until the partners are known, references are as they are kept. */
export function useDatasetName(): (dataset: Dataset) => string {
  const partners = useQuery(platforms()).data?.items
  return useCallback((dataset) => datasetName(dataset, partnerOf(dataset, partners)), [partners])
}
