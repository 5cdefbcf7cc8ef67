import { useQuery } from '@tanstack/react-query'
import { Link } from 'react-router'

import type { Asset, AssetVersion } from '../../api/model'
import { useEvery } from '../../live/live'
import { Hash } from '../../parts/Hash'
import { assets } from '../../texts/assets'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { Empty } from '../../ui/notices'
import { Pager, usePages } from '../../ui/paging'
import { StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import * as queries from './queries'
import { approvalOf, isWaiting, type Action } from './standing'
import { VersionDetails } from './VersionDetails'

const texts = assets.versions

interface Props {
  asset: Asset
  onAction: (action: Action, version: AssetVersion) => void
}

/** The versions of an asset, newest first; which of them are opened stands in the address. */
export function Versions({ asset, onAction }: Props) {
  const pages = usePages(`versions ${asset.asset_id}`)
  const found = useQuery({ ...queries.versions(asset.asset_id, pages.cursor), refetchInterval: useEvery() })
  const [opened, toggle] = useOpened()
  return (
    <Answer query={found}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{texts.none}</Empty>}
          {items.length > 0 && (
            <Table
              label={texts.label}
              columns={columns(asset, opened, toggle)}
              rows={items}
              rowKey={(version) => String(version.version_ordinal)}
              details={(version) =>
                opened.has(version.version_ordinal) ? (
                  <VersionDetails asset={asset} version={version} onAction={(action) => onAction(action, version)} />
                ) : null
              }
            />
          )}
          <Pager pages={pages} next={next} />
        </>
      )}
    </Answer>
  )
}

function useOpened(): [Set<number>, (ordinal: number) => void] {
  const [parameters, change] = useAddress()
  const opened = new Set((parameters.get('open') ?? '').split(',').filter(Boolean).map(Number))
  const toggle = (ordinal: number) => {
    const others = [...opened].filter((each) => each !== ordinal)
    change({ open: (opened.has(ordinal) ? others : [...others, ordinal]).join(',') })
  }
  return [opened, toggle]
}

function columns(asset: Asset, opened: Set<number>, toggle: (ordinal: number) => void): Column<AssetVersion>[] {
  return [
    { name: texts.ordinal, cell: (version) => version.version_ordinal, isNumber: true },
    { name: texts.label_, cell: (version) => version.version_label },
    { name: texts.revision, cell: (version) => <Revision version={version} />, isNumber: true },
    { name: texts.processing, cell: (version) => <StateBadge state={version.processing_state} /> },
    { name: texts.approval, cell: (version) => <Approval asset={asset} version={version} /> },
    { name: texts.reviewer, cell: (version) => version.reviewer },
    { name: texts.hashes, cell: (version) => <Hashes version={version} /> },
    { name: texts.created, cell: (version) => <Time at={version.created_at} /> },
    {
      name: texts.actions,
      cell: ({ version_ordinal: ordinal }) => (
        <Opener ordinal={ordinal} isOpen={opened.has(ordinal)} onToggle={() => toggle(ordinal)} />
      ),
    },
  ]
}

function Revision({ version: { revision, approved_revision: approved } }: { version: AssetVersion }) {
  return (
    <>
      {revision}
      {typeof approved === 'number' && approved !== revision && (
        <span className="assets-below soft">{texts.inService(approved)}</span>
      )}
    </>
  )
}

function Approval({ asset, version }: { asset: Asset; version: AssetVersion }) {
  return (
    <div className="assets-states">
      <StateBadge state={approvalOf(version)} />
      {isWaiting(asset, version) && (
        <Link to={`/review/${asset.asset_id}/${version.version_ordinal}`}>{texts.waiting}</Link>
      )}
    </div>
  )
}

function Hashes({ version }: { version: AssetVersion }) {
  const hashes: [string, string, string | null | undefined][] = [
    [texts.sent, assets.details.contentHash, version.content_hash],
    [texts.made, assets.details.outputHash, version.output_hash],
  ]
  return hashes
    .filter(([, , hash]) => hash)
    .map(([name, of, hash]) => (
      <div key={name} className="assets-hash">
        <span className="soft">{name}</span> <Hash hash={hash} of={of} />
      </div>
    ))
}

function Opener({ ordinal, isOpen, onToggle }: { ordinal: number; isOpen: boolean; onToggle: () => void }) {
  return (
    <Button
      kind="quiet"
      aria-expanded={isOpen}
      aria-label={isOpen ? texts.hide(ordinal) : texts.show(ordinal)}
      onClick={onToggle}
    >
      {isOpen ? texts.hideShort : texts.showShort}
    </Button>
  )
}
