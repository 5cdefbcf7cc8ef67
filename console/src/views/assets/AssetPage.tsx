import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useParams } from 'react-router'

import type { Asset, AssetVersion } from '../../api/model'
import { asset as oneAsset } from '../../data/assets'
import { datasetName, partnerOf } from '../../data/names'
import { platforms } from '../../data/platforms'
import { useEvery } from '../../live/live'
import { useSession } from '../../session/session'
import { assets as texts } from '../../texts/assets'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { Notice } from '../../ui/notices'
import { StateBadge } from '../../ui/parts'
import { Tabs } from '../../ui/Tabs'
import './assets.css'
import { AssetDialog } from './AssetDialog'
import { AssetHead } from './AssetHead'
import type { Outcome } from './changes'
import { Description } from './Description'
import { History } from './History'
import { Lineage } from './Lineage'
import { OutcomeNotice } from './OutcomeNotice'
import { Revisions } from './Revisions'
import { assetActions, DEEDS, type Action } from './standing'
import { Versions } from './Versions'

export default function AssetPage() {
  const assetId = useParams().assetId ?? ''
  const found = useQuery({ ...oneAsset(assetId), refetchInterval: useEvery() })
  return (
    <div className="page">
      <Link to="/assets">{texts.back}</Link>
      <Answer query={found}>{(asset) => <Shown asset={asset} />}</Answer>
    </div>
  )
}

/** What a dialog was opened for. */
interface Wanted {
  action: Action
  version: AssetVersion | null
}

function Shown({ asset }: { asset: Asset }) {
  const partner = partnerOf(asset, useQuery(platforms()).data?.items)
  const [wanted, setWanted] = useState<Wanted | null>(null)
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  return (
    <>
      <div className="page-head">
        <h1>{datasetName(asset, partner)}</h1>
        <StateBadge state={asset.deleted_at ? 'unpublished' : asset.clearance_state} />
        <AssetButtons asset={asset} onAction={(action) => setWanted({ action, version: null })} />
      </div>
      {asset.deleted_at && <Notice kind="warning">{texts.deletedNotice(asset.deleted_by ?? null)}</Notice>}
      {outcome && <OutcomeNotice outcome={outcome} onDismiss={() => setOutcome(null)} />}
      <AssetHead asset={asset} partner={partner} />
      <Parts asset={asset} onAction={(action, version) => setWanted({ action, version })} />
      {wanted && <AssetDialog {...wanted} asset={asset} onDone={setOutcome} onClose={() => setWanted(null)} />}
    </>
  )
}

function AssetButtons({ asset, onAction }: { asset: Asset; onAction: (action: Action) => void }) {
  const { may } = useSession()
  return (
    <div className="buttons" role="group" aria-label={texts.actions.label}>
      {assetActions(asset)
        .filter((action) => may(DEEDS[action]))
        .map((action) => (
          <Button key={action} kind={action === 'unpublish' ? 'danger' : 'plain'} onClick={() => onAction(action)}>
            {texts.actions[action]}
          </Button>
        ))}
    </div>
  )
}

interface PartsProps {
  asset: Asset
  onAction: (action: Action, version: AssetVersion) => void
}

function Parts({ asset, onAction }: PartsProps) {
  const [parameters, change] = useAddress()
  const assetId = asset.asset_id
  const tabs = [
    { id: 'versions', content: () => <Versions asset={asset} onAction={onAction} /> },
    { id: 'lineage', content: () => <Lineage assetId={assetId} /> },
    { id: 'revisions', content: () => <Revisions assetId={assetId} /> },
    { id: 'description', content: () => <Description assetId={assetId} /> },
    { id: 'history', content: () => <History assetId={assetId} /> },
  ] as const
  return (
    <div className="card assets-parts">
      <Tabs
        label={texts.tabs.label}
        tabs={tabs.map((tab) => ({ ...tab, name: texts.tabs[tab.id] }))}
        selected={parameters.get('tab') ?? 'versions'}
        onSelect={(tab) => change({ tab: tab === 'versions' ? null : tab })}
      />
    </div>
  )
}
