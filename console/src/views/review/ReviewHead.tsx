import { Link } from 'react-router'

import type { AssetVersion } from '../../api/model'
import { useDatasetName } from '../../data/names'
import { useMay } from '../../session/session'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Button } from '../../ui/Button'
import { StateBadge } from '../../ui/parts'
import { pathOf, type Neighbours } from './queue'
import type { UnderReview } from './underReview'

interface Props {
  under: UnderReview
  title: string | null
  near: Neighbours
  onHelp: () => void
}

/** What it is, and the ways from here: through the queue, to the asset, to the job. */
export function ReviewHead({ under: { asset, version }, title, near, onHelp }: Props) {
  const mayOperate = useMay('operate')
  const refs = useDatasetName()(asset)
  return (
    <header className="review-head">
      <div className="page-head">
        <h1>{title ?? refs}</h1>
        <span>{texts.which(version.version_label, version.version_ordinal, version.revision ?? 1)}</span>
        <StateBadge state={stateOf(version)} />
        <div className="buttons">
          <Way to={near.previous && pathOf(near.previous)}>{texts.previous}</Way>
          <Way to={near.next && pathOf(near.next)}>{texts.next}</Way>
          <Button onClick={onHelp}>{texts.shortcuts.open}</Button>
        </div>
      </div>
      <p className="soft review-facts-line">
        <span>{asset.platform_id}</span>
        {title && <span>{refs}</span>}
        <span>{shared.dataTypes[asset.data_type] ?? asset.data_type}</span>
        <Link to="/review">{texts.toQueue}</Link>
        <Link to={`/assets/${asset.asset_id}`}>{texts.toAsset}</Link>
        {mayOperate && version.current_job_id && <Link to={`/jobs/${version.current_job_id}`}>{texts.toJob}</Link>}
      </p>
    </header>
  )
}

/** What is not made yet cannot be decided on. */
function stateOf({ processing_state: made, approval_state: decided }: AssetVersion): string {
  return (made === 'completed' ? decided : made) ?? 'queued'
}

function Way({ to, children }: { to: string | null; children: string }) {
  if (to === null) return <Button disabled>{children}</Button>
  return (
    <Link className="button" to={to}>
      {children}
    </Link>
  )
}
