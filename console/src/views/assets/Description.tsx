import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import type { components } from '../../api/gateway'
import { metadata } from '../../data/assets'
import { useEvery } from '../../live/live'
import { assets } from '../../texts/assets'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Choice } from '../../ui/Choice'
import { count, dateTime, dateTimeUtc } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Json, KeyValues } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import * as queries from './queries'

type Described = components['schemas']['LayerDescribed']
type LayerColumn = components['schemas']['LayerColumn']

const texts = assets.description

/** How a version is described: its layer metadata. */
export function Description({ assetId }: { assetId: string }) {
  const [parameters, change] = useAddress()
  const versions = useQuery({ ...queries.versions(assetId, undefined), refetchInterval: useEvery() })
  return (
    <div className="assets-description">
      <Answer query={versions}>
        {({ items }) => {
          const asked = parameters.get('version')
          const chosen = items.find((each) => String(each.version_ordinal) === asked) ?? items[0]
          if (!chosen) return <Empty>{assets.versions.none}</Empty>
          return (
            <>
              <Choice
                label={texts.version}
                value={String(chosen.version_ordinal)}
                choices={items.map((each) => [
                  String(each.version_ordinal),
                  texts.option(each.version_ordinal, each.version_label),
                ])}
                onChange={(version) => change({ version })}
              />
              <OfVersion assetId={assetId} ordinal={chosen.version_ordinal} />
            </>
          )
        }}
      </Answer>
    </div>
  )
}

function OfVersion({ assetId, ordinal }: { assetId: string; ordinal: number }) {
  const found = useQuery({ ...metadata(assetId, ordinal), refetchInterval: useEvery() })
  return <Answer query={found}>{(described) => <Said described={described} />}</Answer>
}

function Said({ described }: { described: Described }) {
  const columns = described.columns ?? []
  return (
    <>
      {described.version === 0 ? <p className="soft">{texts.none}</p> : <KeyValues items={facts(described)} />}
      {columns.length > 0 && (
        <Table label={texts.columns} columns={COLUMNS} rows={columns} rowKey={(column) => column.name} />
      )}
    </>
  )
}

function facts(described: Described): [string, ReactNode][] {
  const { bands = [], style } = described
  const items: [string, ReactNode][] = [
    [texts.title, described.title],
    [texts.text, described.description],
    [texts.keywords, described.keywords?.join(', ')],
    [texts.attribution, described.attribution],
    [texts.licence, described.licence],
    [texts.time, time(described)],
    [texts.bands, bands.length > 0 && <Json key="bands" value={bands} label={texts.bands} />],
    [texts.style, style && <Json key="style" value={style} label={texts.style} />],
    [texts.written, written(described)],
    [texts.revision, count(described.version)],
  ]
  return items.filter(([, value]) => value)
}

function time({ temporal_start: start, temporal_end: end }: Described): string | null {
  if (!start && !end) return null
  return texts.until(start ? dateTimeUtc(start) : '', end ? dateTimeUtc(end) : '')
}

function written({ updated_at: at, updated_by: who }: Described): string {
  return who ? `${dateTime(at)} ${assets.head.by(who)}` : dateTime(at)
}

const COLUMNS: Column<LayerColumn>[] = [
  { name: texts.column.name, cell: (column) => <code>{column.name}</code> },
  { name: texts.column.field, cell: (column) => column.field },
  { name: texts.column.type, cell: (column) => <code>{column.type}</code> },
]
