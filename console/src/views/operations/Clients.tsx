import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'

import type { Client } from '../../api/model'
import { useSession } from '../../session/session'
import { operations } from '../../texts/operations'
import { shared } from '../../texts/shared'
import { useAbove } from '../../ui/Above'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { Empty } from '../../ui/notices'
import { Card, StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { ClientDialog } from './ClientDialog'
import type { ClientDeed, Issued } from './clientDeeds'
import { IssuedKey } from './IssuedKey'
import { NewClientDialog } from './NewClientDialog'
import * as queries from './queries'

const texts = operations.clients

/** What a dialog was opened for. */
type Wanted = { deed: 'add' } | { deed: ClientDeed; client: Client }

/** Who has a key, and what it opens. A new key is kept by the page only as long as it is shown. */
export function Clients() {
  const found = useQuery(queries.clients())
  const [wanted, setWanted] = useState<Wanted | null>(null)
  const done = useDone()

  return (
    <>
      <Card
        title={texts.label}
        actions={<Button onClick={() => setWanted({ deed: 'add' })}>{texts.add}</Button>}
        flush
      >
        <Answer query={found}>
          {({ items }) =>
            items.length > 0 ? (
              <Table
                label={texts.label}
                columns={[...COLUMNS, actions(setWanted)]}
                rows={items}
                rowKey={({ client_id: id }) => id}
              />
            ) : (
              <Empty>{texts.none}</Empty>
            )
          }
        </Answer>
      </Card>
      {wanted?.deed === 'add' && <NewClientDialog onDone={done} onClose={() => setWanted(null)} />}
      {wanted && wanted.deed !== 'add' && <ClientDialog {...wanted} onDone={done} onClose={() => setWanted(null)} />}
    </>
  )
}

/** Gives what follows a deed: its key is shown above all views, since nothing that ends a view may take it away. */
function useDone(): (issued: Issued | null, isOwn?: boolean) => void {
  const cache = useQueryClient()
  const showAbove = useAbove()
  const { signIn } = useSession()
  const readAnew = () => cache.invalidateQueries({ queryKey: ['clients'] })
  return (issued, isOwn = false) => {
    if (issued) showAbove(<IssuedKey issued={issued} onStored={() => showAbove(null)} />)
    // A session ends with the key that began it. Where no other can begin now, one is asked to sign in.
    if (issued && isOwn) void signIn(issued.key).catch(() => undefined).then(readAnew)
    else void readAnew()
  }
}

const COLUMNS: Column<Client>[] = [
  { name: texts.client, cell: (client) => <Name client={client} /> },
  { name: texts.roles, cell: ({ roles }) => roles.map((role) => shared.roles[role] ?? role).join(', ') },
  { name: texts.platform, cell: ({ platform_id: platform }) => platform && <code>{platform}</code> },
  { name: texts.state, cell: ({ is_active }) => <StateBadge state={is_active ? 'active' : 'disabled'} /> },
  { name: texts.lastUsed, cell: ({ last_used_at: at }) => (at ? <Time at={at} /> : texts.never) },
  { name: texts.since, cell: (client) => <Time at={client.created_at} /> },
]

function Name({ client }: { client: Client }) {
  return (
    <>
      <code>{client.client_id}</code>
      <span className="operations-below soft">{client.display_name}</span>
    </>
  )
}

function actions(onWant: (wanted: Wanted) => void): Column<Client> {
  return {
    name: texts.actions,
    cell: (client) => {
      const deeds: ClientDeed[] = ['rotate', client.is_active ? 'disable' : 'enable']
      return (
        <div className="operations-actions">
          {deeds.map((deed) => (
            <Button
              key={deed}
              kind="quiet"
              aria-label={texts.ofClient(texts[deed], client.client_id)}
              onClick={() => onWant({ deed, client })}
            >
              {texts[deed]}
            </Button>
          ))}
        </div>
      )
    },
  }
}
