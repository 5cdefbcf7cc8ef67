import type { ReactNode } from 'react'
import { Link } from 'react-router'

import type { Asset, AssetVersion } from '../../api/model'
import { reportOf } from '../../data/report'
import { Findings, OutcomeBadge } from '../../parts/Findings'
import { Hash } from '../../parts/Hash'
import { JobLink } from '../../parts/JobLink'
import { useSession } from '../../session/session'
import { assets } from '../../texts/assets'
import { Button } from '../../ui/Button'
import { between, dateTime, duration } from '../../ui/format'
import { CopyButton, KeyValues } from '../../ui/parts'
import { Files } from './Files'
import { boxText } from './filters'
import { outputsOf, type Output } from './outputs'
import { DEEDS, isWaiting, versionActions, type VersionAction } from './standing'

const texts = assets.details

interface Props {
  asset: Asset
  version: AssetVersion
  onAction: (action: VersionAction) => void
}

export function VersionDetails({ asset, version, onAction }: Props) {
  const report = reportOf(version)
  return (
    <div className="assets-details">
      <Actions asset={asset} version={version} onAction={onAction} />
      <section>
        <h3>{texts.states}</h3>
        <KeyValues items={happened(version).filter(([, value]) => value)} />
      </section>
      <section>
        <h3>{texts.outputs}</h3>
        <Outputs version={version} />
        <Files version={version} />
      </section>
      <section>
        <h3>
          {texts.validation} {report && <OutcomeBadge outcome={report.outcome} />}
        </h3>
        <Findings report={report} />
      </section>
    </div>
  )
}

function Actions({ asset, version, onAction }: Props) {
  const { may } = useSession()
  const actions = versionActions(asset, version).filter((action) => may(DEEDS[action]))
  const waits = isWaiting(asset, version)
  if (actions.length === 0 && !waits) return null
  return (
    <div className="buttons" role="group" aria-label={assets.actions.label}>
      {waits && (
        <Link className="button primary" to={`/review/${asset.asset_id}/${version.version_ordinal}`}>
          {assets.actions.review}
        </Link>
      )}
      {actions.map((action) => (
        <Button
          key={action}
          kind={action === 'delete' || action === 'revoke' ? 'danger' : 'plain'}
          onClick={() => onAction(action)}
        >
          {assets.actions[action]}
        </Button>
      ))}
    </div>
  )
}

function happened(version: AssetVersion): [string, ReactNode][] {
  const took = between(version.processing_started_at, version.processing_completed_at)
  const isUnderWay = version.processing_state === 'queued' || version.processing_state === 'processing'
  return [
    [texts.error, version.last_error],
    [texts.rejected, version.rejection_reason],
    [texts.started, when(version.processing_started_at)],
    [texts.completed, when(version.processing_completed_at)],
    [texts.took, version.processing_completed_at && took !== null ? duration(took) : null],
    [texts.expected, isUnderWay ? when(version.estimated_completion_at) : null],
    [texts.reviewed, when(version.reviewed_at, version.reviewer)],
    [texts.firstApproved, when(version.first_approved_at)],
    [texts.revoked, when(version.revoked_at)],
    [texts.deleted, when(version.deleted_at, version.deleted_by)],
    [texts.workflow, workflowOf(version)],
    [texts.job, version.current_job_id && <JobLink key="job" jobId={version.current_job_id} />],
    [texts.jobs, version.job_count > 1 ? version.job_count : null],
    [texts.request, version.last_request_id && <code key="request">{version.last_request_id}</code>],
    [texts.priority, version.priority !== 0 ? version.priority : null],
  ]
}

function when(time: string | null | undefined, who?: string | null): string | null {
  if (!time) return null
  return who ? `${dateTime(time)} ${assets.head.by(who)}` : dateTime(time)
}

function workflowOf({ workflow_id: id, workflow_version: version }: AssetVersion): string | null {
  return id ? [id, version].filter(Boolean).join(' ') : null
}

function Outputs({ version }: { version: AssetVersion }) {
  const { bbox, content_hash: sent, output_hash: made } = version
  const others: [string, ReactNode][] = [
    [texts.bbox, bbox && boxText(bbox)],
    [texts.contentHash, sent && <Hash key="sent" hash={sent} of={texts.contentHash} />],
    [texts.outputHash, made && <Hash key="made" hash={made} of={texts.outputHash} />],
  ]
  const items = [...outputsOf(version).map(pathOf), ...others.filter(([, value]) => value)]
  return items.length > 0 ? <KeyValues items={items} /> : <p className="soft">{texts.nothing}</p>
}

function pathOf({ name, value }: Output): [string, ReactNode] {
  const path = (
    <span className="assets-code">
      <code>{value}</code> <CopyButton text={value} of={texts.path(name)} />
    </span>
  )
  return [name, path]
}
