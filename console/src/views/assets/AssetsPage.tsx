import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import type { Asset, Platform } from '../../api/model'
import { platforms } from '../../data/platforms'
import { useEvery } from '../../live/live'
import { assets as texts } from '../../texts/assets'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Empty } from '../../ui/notices'
import { Pager, usePages } from '../../ui/paging'
import { Card } from '../../ui/parts'
import './assets.css'
import { AssetFilters } from './AssetFilters'
import { AssetsMap } from './AssetsMap'
import { AssetsTable } from './AssetsTable'
import { NO_FILTERS, queryOf } from './filters'
import * as queries from './queries'

const NONE: Asset[] = []
const NO_PARTNERS: Platform[] = []

export default function AssetsPage() {
  const [parameters, change] = useAddress()
  const [pointed, setPointed] = useState<string | null>(null)
  const query = queryOf(parameters)
  const pages = usePages(JSON.stringify(query))
  const found = useQuery({ ...queries.listed(query, pages.cursor), refetchInterval: useEvery() })
  const partners = useQuery(platforms()).data?.items ?? NO_PARTNERS
  return (
    <div className="page">
      <div className="page-head">
        <h1>{texts.title}</h1>
      </div>
      <AssetFilters
        parameters={parameters}
        platforms={partners}
        onChange={change}
        onClear={() => change(NO_FILTERS)}
      />
      <div className="assets-found">
        <Card title={texts.list} flush>
          <Answer query={found}>
            {(page) => (
              <>
                {page.items.length === 0 && <Empty>{texts.none}</Empty>}
                {page.items.length > 0 && <AssetsTable assets={page.items} platforms={partners} onPoint={setPointed} />}
                <Pager pages={pages} next={page.next} />
              </>
            )}
          </Answer>
        </Card>
        <AssetsMap
          assets={found.data?.items ?? NONE}
          platforms={partners}
          box={parameters.get('bbox')}
          pointed={pointed}
          onPoint={setPointed}
          onBox={(bbox) => change({ bbox })}
        />
      </div>
    </div>
  )
}
