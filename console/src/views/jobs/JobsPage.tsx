import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from 'react-router'

import { useEvery } from '../../live/live'
import { jobs as texts } from '../../texts/jobs'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { Empty } from '../../ui/notices'
import { Pager, usePages } from '../../ui/paging'
import { Card } from '../../ui/parts'
import { filtersOf, NO_FILTERS, queryOf } from './filters'
import { JobFilters } from './JobFilters'
import { JobTable } from './JobTable'
import { pageOfJobs } from './pages'
import './jobs.css'

const SOON_MS = 10_000

export default function JobsPage() {
  const [address, change] = useAddress()
  const filters = filtersOf(address)
  const clear = () => change(NO_FILTERS)
  const query = queryOf(filters)
  const isFiltered = Object.values(query).some((value) => value !== undefined)
  const client = useQueryClient()
  const pages = usePages(JSON.stringify(query))
  const page = useQuery({
    ...pageOfJobs(query, pages.cursor),
    placeholderData: keepPreviousData,
    refetchInterval: useEvery(),
  })
  const prefetch = (next: string) =>
    void client.prefetchQuery({ ...pageOfJobs(query, next), staleTime: SOON_MS })
  return (
    <div className="page">
      <div className="page-head">
        <h1>{texts.title}</h1>
        <div className="buttons">
          <Link className="button" to="/workflows">
            {texts.submit}
          </Link>
        </div>
      </div>
      <JobFilters filters={filters} isFiltered={isFiltered} onChange={change} onClear={clear} />
      <Card
        title={texts.list}
        flush
        className={page.isPlaceholderData ? 'jobs-list jobs-waiting' : 'jobs-list'}
        actions={<Pager pages={pages} next={page.data?.next} onApproach={prefetch} />}
      >
        <Answer query={page}>
          {({ items }) =>
            items.length > 0 ? <JobTable jobs={items} /> : <NoJobs isFiltered={isFiltered} onClear={clear} />
          }
        </Answer>
      </Card>
    </div>
  )
}

function NoJobs({ isFiltered, onClear }: { isFiltered: boolean; onClear: () => void }) {
  if (!isFiltered)
    return (
      <Empty>
        {texts.none} {texts.noneHint} <Link to="/workflows">{texts.submit}</Link>
      </Empty>
    )
  return (
    <Empty>
      {texts.noMatch} <Button onClick={onClear}>{texts.clear}</Button>
    </Empty>
  )
}
