/** The page of a version under review, once it is known. */

import { useRef, useState } from 'react'
import { useNavigate } from 'react-router'

import type { AssetChange } from '../../api/model'
import { useDatasetName } from '../../data/names'
import type { MapHandle } from '../../map'
import { useSession } from '../../session/session'
import { review as texts } from '../../texts/review'
import { Notice, ProblemNotice } from '../../ui/notices'
import { BandTable } from './BandTable'
import { Comparison } from './Comparison'
import { ApproveDialog, RejectDialog } from './Decision'
import { DecisionCard } from './DecisionCard'
import { isWithoutData } from './documents'
import { History } from './History'
import { useKnown } from './known'
import { MapPart } from './MapPart'
import { mapKeys, useMapView } from './mapView'
import { neighbours, pathOf, useQueue } from './queue'
import { ReviewHead } from './ReviewHead'
import { ShortcutHelp } from './ShortcutHelp'
import { useShortcutChoice, useShortcuts } from './shortcuts'
import { isOpen, type UnderReview } from './underReview'
import { Validation } from './Validation'

type Opened = { kind: 'approve' | 'reject'; seen: UnderReview } | { kind: 'help' }

export function Review({ under }: { under: UnderReview }) {
  const { asset, version } = under
  const { may } = useSession()
  const known = useKnown(under)
  const view = useMapView(known.places.there !== null)
  const map = useRef<MapHandle>(null)
  const [opened, setOpened] = useState<Opened | null>(null)
  const [decided, setDecided] = useState<AssetChange | null>(null)
  const [firstSeen] = useState(version.revision)
  const [hasKeys, setHasKeys] = useShortcutChoice()
  const near = neighbours(useQueue().data?.items ?? [], asset.asset_id, version.version_ordinal)
  const title = known.here.description?.title ?? null
  const nameOf = useDatasetName()

  const canDecide = may('review') && isOpen(under)
  const opening = (kind: 'approve' | 'reject') => () => setOpened({ kind, seen: under })
  const [approve, reject] = canDecide ? [opening('approve'), opening('reject')] : []
  const go = useNavigate()
  useShortcuts(
    {
      a: approve,
      r: reject,
      j: near.next ? () => void go(pathOf(near.next!)) : undefined,
      k: near.previous ? () => void go(pathOf(near.previous!)) : undefined,
      '?': () => setOpened({ kind: 'help' }),
      ...(known.places.here ? mapKeys(view, map) : {}),
    },
    hasKeys,
  )

  const close = () => setOpened(null)
  const dialog = {
    name: title ?? nameOf(asset),
    onDone: setDecided,
    onClose: close,
  }
  return (
    <div className="page">
      <ReviewHead under={under} title={title} near={near} onHelp={() => setOpened({ kind: 'help' })} />
      {version.revision !== firstSeen && <Notice kind="warning">{texts.newRevision(version.revision ?? 1)}</Notice>}
      {known.here.raster && isWithoutData(known.here.raster) && <Notice kind="warning">{texts.withoutData}</Notice>}
      <div className="review-columns">
        <MapPart under={under} known={known} view={view} handle={map} />
        <div className="review-stack review-side">
          <DecisionCard under={under} decided={decided} next={near.next} onApprove={approve} onReject={reject} />
          <Validation report={known.here.report} />
          <History assetId={asset.asset_id} ordinal={version.version_ordinal} />
        </div>
        <div className="review-stack">
          {known.error && <ProblemNotice error={known.error} />}
          <Comparison here={known.here} there={known.there} />
          {known.here.raster && <BandTable here={known.here.raster} there={known.there?.raster} />}
        </div>
      </div>
      {opened?.kind === 'approve' && <ApproveDialog {...dialog} seen={opened.seen} />}
      {opened?.kind === 'reject' && <RejectDialog {...dialog} seen={opened.seen} />}
      {opened?.kind === 'help' && <ShortcutHelp isOn={hasKeys} onChoice={setHasKeys} onClose={close} />}
    </div>
  )
}
