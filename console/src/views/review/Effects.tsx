/** What a decision would do to the services, as a dry run of it says. */

import { useQuery } from '@tanstack/react-query'

import { content, gateway } from '../../api/client'
import { review as texts } from '../../texts/review'
import { whichOf, type UnderReview } from './underReview'

interface Props {
  seen: UnderReview
  clearance: 'ouo' | 'public' | null
}

export function Effects({ seen, clearance }: Props) {
  const { data } = useQuery({
    queryKey: ['asset', seen.asset.asset_id, 'effects', whichOf(seen), clearance],
    queryFn: () => readEffects(seen, clearance!),
    enabled: clearance !== null,
    retry: false, // why it would be refused is said when it is decided
  })
  return (
    <div className="soft" aria-live="polite">
      {data?.map((effect) => <p key={effect}>{effect}</p>)}
      {data?.length === 0 && <p>{texts.approve.noEffect}</p>}
    </div>
  )
}

async function readEffects(seen: UnderReview, clearance_level: 'ouo' | 'public') {
  const body = { ...whichOf(seen), clearance_level, dry_run: true }
  return (await content(gateway.POST('/api/platform/approve', { body }))).effects
}
