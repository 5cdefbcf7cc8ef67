import { useQuery } from '@tanstack/react-query'

import type { AssetVersion } from '../../api/model'
import { useEvery } from '../../live/live'
import { useMay } from '../../session/session'
import { assets } from '../../texts/assets'
import { Answer } from '../../ui/Answer'
import { Empty, ProblemNotice } from '../../ui/notices'
import { Pager, usePages } from '../../ui/paging'
import { StateBadge } from '../../ui/parts'
import type { Served } from './addresses'
import { ChainSteps } from './ChainSteps'
import { chainsOf, type Chain, type Sources } from './lineage'
import * as queries from './queries'
import { approvalOf } from './standing'

const texts = assets.lineage
const MOST_REVISIONS = 500

/** Where each version came from and where it went: request, job, outputs, services. */
export function Lineage({ assetId }: { assetId: string }) {
  const pages = usePages(`lineage ${assetId}`)
  const found = useQuery({ ...queries.versions(assetId, pages.cursor), refetchInterval: useEvery() })
  const { sources, served, error } = useSources(assetId)
  return (
    <div className="assets-lineage">
      {error && <ProblemNotice error={error} />}
      <Answer query={found}>
        {({ items, next }) => (
          <>
            {items.length === 0 && <Empty>{texts.none}</Empty>}
            {items.map((version) => (
              <OfVersion key={version.version_ordinal} version={version} sources={sources} served={served} />
            ))}
            <Pager pages={pages} next={next} />
          </>
        )}
      </Answer>
    </div>
  )
}

function useSources(assetId: string): { sources: Sources; served: Served[]; error: Error | null } {
  const every = useEvery()
  const operates = useMay('operate')
  const requests = useQuery({ ...queries.requests(assetId), refetchInterval: every })
  const jobs = useQuery({ ...queries.jobs(assetId, operates), refetchInterval: every })
  const revisions = useQuery({ ...queries.revisions(assetId, undefined, MOST_REVISIONS), refetchInterval: every })
  const services = useQuery({ ...queries.services(assetId), refetchInterval: every })
  return {
    sources: {
      requests: requests.data?.items ?? [],
      jobs: jobs.data?.jobs ?? [],
      revisions: revisions.data?.items ?? [],
    },
    served: services.data?.items ?? [],
    error: requests.error ?? jobs.error ?? revisions.error ?? services.error,
  }
}

function OfVersion({ version, sources, served }: { version: AssetVersion; sources: Sources; served: Served[] }) {
  const own = served.filter((each) => each.version_ordinal === version.version_ordinal)
  return (
    <section className="assets-lineage-version">
      <h2>
        {texts.heading(version.version_ordinal, version.version_label)} <StateBadge state={approvalOf(version)} />
      </h2>
      {chainsOf(version, sources).map((chain) => (
        <div key={chain.revision}>
          <h3>
            {texts.revision(chain.revision)} <span className="soft">{standingOf(chain)}</span>
          </h3>
          <ChainSteps chain={chain} served={chain.isInService ? own : []} />
        </div>
      ))}
    </section>
  )
}

function standingOf(chain: Chain): string {
  const words = [chain.isCurrent ? texts.current : texts.superseded, chain.isInService ? texts.inService : null]
  return words.filter(Boolean).join(', ')
}
