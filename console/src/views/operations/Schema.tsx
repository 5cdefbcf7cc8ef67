import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import type { components } from '../../api/orchestrator'
import { operations } from '../../texts/operations'
import { Answer } from '../../ui/Answer'
import { bytes, count, dateTime, shortId } from '../../ui/format'
import { Empty, Notice } from '../../ui/notices'
import { Card, KeyValues } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import * as queries from './queries'

type Status = components['schemas']['SchemaStatus']
type Reported = components['schemas']['Reported']
type TableReport = components['schemas']['TableReport']

const texts = operations.schema

/** How the database stands to the models, and how much its tables hold. Admins only. */
export function Schema() {
  const status = useQuery(queries.schemaStatus())
  const tables = useQuery(queries.tables())
  return (
    <>
      <Answer query={status}>{(found) => <Standing status={found} />}</Answer>
      <Card title={texts.tables} flush>
        <Answer query={tables}>
          {({ items }) => <Table label={texts.tables} columns={TABLES} rows={items} rowKey={({ name }) => name} />}
        </Answer>
      </Card>
    </>
  )
}

function Standing({ status }: { status: Status }) {
  return (
    <>
      <Card title={texts.status}>
        <div className="operations-standing">
          <Notice kind={status.current ? 'good' : 'warning'}>
            {status.current ? texts.isCurrent : texts.isBehind}
          </Notice>
          <KeyValues items={facts(status)} />
        </div>
      </Card>
      <Card title={texts.pending} flush>
        <Objects label={texts.pending} items={status.pending} none={texts.noPending} />
      </Card>
      <Card title={texts.differences} flush>
        <Objects label={texts.differences} items={status.differences} none={texts.noDifferences} />
      </Card>
    </>
  )
}

function facts(status: Status): [string, ReactNode][] {
  const { pgstac_version: pgstac, deployed_fingerprint: deployed, deployed_at: at } = status
  return [
    [texts.database, status.database],
    [texts.server, status.server_version],
    [texts.postgis, status.postgis_version],
    [texts.pgstac, pgstac && texts.wanted(pgstac, status.pgstac_wanted)],
    [texts.fingerprint, <Fingerprint key="wanted" value={status.fingerprint} />],
    [texts.deployed, deployed && <Fingerprint key="deployed" value={deployed} />],
    [texts.deployedAt, at && dateTime(at)],
  ]
}

function Fingerprint({ value }: { value: string }) {
  return <code title={value}>{shortId(value)}</code>
}

function Objects({ label, items, none }: { label: string; items: Reported[]; none: string }) {
  if (items.length === 0) return <Empty>{none}</Empty>
  return <Table label={label} columns={OBJECTS} rows={items} rowKey={(each) => `${each.object} ${each.detail}`} />
}

const OBJECTS: Column<Reported>[] = [
  { name: texts.object, cell: (each) => <code>{each.object}</code> },
  { name: texts.detail, cell: (each) => each.detail },
  { name: texts.byHand, cell: (each) => each.by_hand && <code>{each.by_hand}</code> },
]

const TABLES: Column<TableReport>[] = [
  { name: texts.table, cell: ({ name }) => <code>{name}</code> },
  { name: texts.about, cell: ({ comment }) => <span className="operations-text soft">{comment}</span> },
  {
    name: texts.rows,
    cell: (table) => (table.rows_estimated ? texts.estimated(count(table.rows)) : count(table.rows)),
    isNumber: true,
  },
  { name: texts.size, cell: (table) => bytes(table.bytes), isNumber: true },
  { name: texts.indexes, cell: ({ indexes }) => count(indexes), isNumber: true },
]
