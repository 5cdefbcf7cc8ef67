import { useQuery } from '@tanstack/react-query'
import { useMemo, type ReactNode } from 'react'

import type { Asset, Platform } from '../../api/model'
import { datasetName, orderedRefs } from '../../data/names'
import { useEvery } from '../../live/live'
import { asBbox, ExtentsMap } from '../../map'
import { assets as texts } from '../../texts/assets'
import { shared } from '../../texts/shared'
import { Answer } from '../../ui/Answer'
import { count } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Card, CopyButton, KeyValues, StateBadge, Time } from '../../ui/parts'
import { Addresses } from './Addresses'
import * as queries from './queries'

interface Props {
  asset: Asset
  partner: Platform | undefined
}

/** What is known of an asset whatever its versions, where it is, and where it is served. */
export function AssetHead({ asset, partner }: Props) {
  return (
    <div className="assets-head">
      <Card title={texts.head.title}>
        <Facts asset={asset} partner={partner} />
      </Card>
      <Extent asset={asset} partner={partner} />
      <Card title={texts.services.title} className="assets-services">
        <Services asset={asset} />
      </Card>
    </div>
  )
}

function Facts({ asset, partner }: Props) {
  const head = texts.head
  const latest = asset.latest_approved_version_ordinal
  const items: [string, ReactNode][] = [
    [head.refs, <RefList key="refs" refs={orderedRefs(asset.platform_refs, partner)} />],
    [head.partner, partner ? `${partner.display_name} (${asset.platform_id})` : asset.platform_id],
    [head.type, shared.dataTypes[asset.data_type]],
    [head.clearance, <StateBadge key="clearance" state={asset.clearance_state} />],
    [head.clearedBy, at(asset.cleared_at, asset.cleared_by)],
    [head.publicBy, at(asset.made_public_at, asset.made_public_by)],
    [head.addresses, texts.urlModes[asset.url_mode] ?? asset.url_mode],
    [head.latest, typeof latest === 'number' ? head.inService(latest) : head.notInService],
    [head.deleted, at(asset.deleted_at, asset.deleted_by)],
    [head.id, <Id key="id" id={asset.asset_id} />],
    [head.shortId, asset.short_id && <code key="short">{asset.short_id}</code>],
    [head.created, <Time key="created" at={asset.created_at} />],
    [head.updated, <Time key="updated" at={asset.updated_at} />],
    [head.lock, count(asset.version)],
  ]
  return <KeyValues items={items.filter(([, value]) => value)} />
}

function RefList({ refs }: { refs: [string, string][] }) {
  return (
    <ul className="assets-refs">
      {refs.map(([name, value]) => (
        <li key={name}>
          <span className="soft">{name}</span> {value}
        </li>
      ))}
    </ul>
  )
}

function Id({ id }: { id: string }) {
  return (
    <span className="assets-code">
      <code>{id}</code> <CopyButton text={id} of={texts.head.id} />
    </span>
  )
}

/** When something was done and by whom; nothing where it was not. */
function at(time: string | null | undefined, who: string | null | undefined): ReactNode {
  if (!time) return null
  return (
    <>
      <Time at={time} /> {who && <span className="soft">{texts.head.by(who)}</span>}
    </>
  )
}

function Extent({ asset, partner }: Props) {
  const name = datasetName(asset, partner)
  // What stays the same is read anew again and again: the map is drawn anew only when the box is another.
  const box = asset.newest_version?.bbox?.join()
  const extents = useMemo(() => {
    const bbox = asBbox(box?.split(',').map(Number))
    return bbox ? [{ id: name, bbox, label: name }] : []
  }, [box, name])
  return (
    <Card title={texts.extent.title} className="assets-extent" flush>
      {extents.length === 0 ? (
        <Empty>{texts.extent.none}</Empty>
      ) : (
        <div className="assets-map-frame">
          <ExtentsMap label={texts.extent.label(name)} extents={extents} />
        </div>
      )}
    </Card>
  )
}

function Services({ asset }: { asset: Asset }) {
  const served = useQuery({ ...queries.services(asset.asset_id), refetchInterval: useEvery() })
  const isInService = typeof asset.latest_approved_version_ordinal === 'number' && !asset.deleted_at
  return (
    <Answer query={served}>
      {({ items }) => <Addresses items={items} none={isInService ? texts.services.noneAt : texts.services.none} />}
    </Answer>
  )
}
