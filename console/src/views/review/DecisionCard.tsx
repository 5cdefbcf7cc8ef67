import type { ReactNode } from 'react'
import { Link } from 'react-router'

import type { AssetChange, WaitingVersion } from '../../api/model'
import { useDatasetName } from '../../data/names'
import { useRequestStatus } from '../../data/requestStatus'
import { useMay } from '../../session/session'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Button } from '../../ui/Button'
import { Notice } from '../../ui/notices'
import { Card, KeyValues, StateBadge, Time } from '../../ui/parts'
import { pathOf } from './queue'
import { isOpen, type UnderReview } from './underReview'

interface Props {
  under: UnderReview
  /** What came of a decision that was made here. */
  decided: AssetChange | null
  /** Which comes next in the queue. */
  next: WaitingVersion | null
  /** Missing where nothing can be decided. */
  onApprove?: () => void
  onReject?: () => void
}

/** What can be decided, or what was. */
export function DecisionCard({ under, decided, next, onApprove, onReject }: Props) {
  const mayReview = useMay('review')
  return (
    <Card title={texts.decision} className="review-decision">
      {decided && <DecidedNotice decided={decided} />}
      {decided && <Onwards next={next} />}
      <Standing under={under} isNews={decided === null} />
      {onApprove && onReject && (
        <div className="buttons">
          <Button kind="primary" onClick={onApprove}>
            {texts.approve.open}
          </Button>
          <Button kind="danger" onClick={onReject}>
            {texts.reject.open}
          </Button>
        </div>
      )}
      {!mayReview && <p className="soft">{texts.reviewersDecide}</p>}
    </Card>
  )
}

function DecidedNotice({ decided: { version, warning } }: { decided: AssetChange }) {
  return (
    <Notice kind={warning ? 'warning' : 'good'}>
      <strong>{texts.decided[version?.approval_state ?? 'approved']}</strong>
      {warning && <span>{warning}</span>}
    </Notice>
  )
}

function Onwards({ next }: { next: WaitingVersion | null }) {
  const nameOf = useDatasetName()
  if (next === null) {
    return (
      <p>
        {texts.noneLeft} <Link to="/review">{texts.toQueue}</Link>
      </p>
    )
  }
  return (
    <Link className="button primary" to={pathOf(next)}>
      {texts.nextIs(next.title ?? nameOf(next))}
    </Link>
  )
}

/** How it stands: what it would replace, or who decided. */
function Standing({ under, isNews }: { under: UnderReview; isNews: boolean }) {
  const { asset, version, inService } = under
  const { data: status } = useRequestStatus(version.last_request_id)
  const clearance = <StateBadge state={asset.clearance_state ?? 'uncleared'} />
  if (isOpen(under)) {
    const replaced = inService && texts.which(inService.label, inService.ordinal, inService.revision)
    return (
      <KeyValues
        items={[
          [texts.facts.replaces, replaced ?? texts.nothing],
          [texts.facts.clearance, clearance],
          [texts.facts.requested, status?.clearance_requested && <StateBadge state={status.clearance_requested} />],
          [texts.facts.waiting, <Time at={version.processing_completed_at} />],
          [texts.facts.reviewer, isEndorsed(version) && texts.firstApproval(version.endorsed_by ?? '')],
        ]}
      />
    )
  }
  const decision: [string, ReactNode][] = [
    [texts.facts.reviewer, version.reviewer],
    [texts.facts.reviewed, version.reviewed_at && <Time at={version.reviewed_at} />],
    [shared.reason, version.rejection_reason],
    [texts.facts.note, status?.decision?.note],
    [texts.facts.publicCopy, status?.export.error],
  ]
  return (
    <>
      {isNews && <Notice kind="info">{standing(version)}</Notice>}
      <KeyValues items={[[texts.facts.clearance, clearance], ...decision.filter(([, value]) => value)]} />
    </>
  )
}

/** Whether the first of two reviewers has approved the revision that waits. */
function isEndorsed({ endorsed_revision, revision }: UnderReview['version']) {
  return endorsed_revision != null && endorsed_revision === revision
}

function standing(version: UnderReview['version']): string {
  if (version.deleted_at) return texts.standing.deleted
  if (version.processing_state === 'failed') return texts.standing.failed(version.last_error ?? '')
  if (version.processing_state !== 'completed') return texts.standing.processing
  return texts.standing[version.approval_state === 'approved' ? 'approved' : 'rejected']
}
