import { Link } from 'react-router'

import type { Asset, Platform } from '../../api/model'
import { datasetName, orderedRefs, partnerOf } from '../../data/names'
import { assets as texts } from '../../texts/assets'
import { shared } from '../../texts/shared'
import { StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'

interface Props {
  assets: Asset[]
  platforms: Platform[]
  /** Told which asset the pointer or the focus rests on, for the map. */
  onPoint: (assetId: string | null) => void
}

export function AssetsTable({ assets, platforms, onPoint }: Props) {
  const columns: Column<Asset>[] = [
    {
      name: texts.columns.dataset,
      cell: (asset) => <Dataset asset={asset} partner={partnerOf(asset, platforms)} onPoint={onPoint} />,
    },
    { name: texts.columns.partner, cell: (asset) => partnerOf(asset, platforms)?.display_name ?? asset.platform_id },
    { name: texts.columns.type, cell: (asset) => shared.dataTypes[asset.data_type] },
    { name: texts.columns.newest, cell: (asset) => <Newest asset={asset} /> },
    { name: texts.columns.states, cell: (asset) => <States asset={asset} /> },
    { name: texts.columns.updated, cell: (asset) => <LastChange asset={asset} /> },
  ]
  return <Table label={texts.list} columns={columns} rows={assets} rowKey={(asset) => asset.asset_id} />
}

interface DatasetProps {
  asset: Asset
  partner: Platform | undefined
  onPoint: Props['onPoint']
}

function Dataset({ asset, partner, onPoint }: DatasetProps) {
  const point = () => onPoint(asset.asset_id)
  return (
    <>
      <Link
        className="assets-name"
        to={`/assets/${asset.asset_id}`}
        onMouseEnter={point}
        onFocus={point}
        onMouseLeave={() => onPoint(null)}
        onBlur={() => onPoint(null)}
      >
        {datasetName(asset, partner)}
      </Link>
      <span className="assets-below soft">
        {orderedRefs(asset.platform_refs, partner)
          .map(([name]) => name)
          .join(' / ')}
      </span>
    </>
  )
}

function Newest({ asset: { newest_version: version } }: { asset: Asset }) {
  if (!version) return <span className="soft">{texts.noVersion}</span>
  return (
    <>
      {version.version_label}
      <span className="assets-below assets-line soft">
        {texts.version(version.version_ordinal)}, {texts.revision(version.revision)}
      </span>
    </>
  )
}

/** Of the asset its clearance, of its newest version the rest. */
function States({ asset }: { asset: Asset }) {
  const version = asset.newest_version
  const isOpen = version && version.processing_state === 'completed'
  return (
    <div className="assets-states">
      <StateBadge state={asset.deleted_at ? 'unpublished' : asset.clearance_state} />
      {version && !isOpen && <StateBadge state={version.processing_state} />}
      {isOpen && <StateBadge state={version.approval_state} />}
    </div>
  )
}

/** Of the asset or of its newest version: processing changes only the latter. */
function LastChange({ asset: { updated_at, newest_version: version } }: { asset: Asset }) {
  const last = version && version.updated_at > updated_at ? version.updated_at : updated_at
  return <Time at={last} />
}
