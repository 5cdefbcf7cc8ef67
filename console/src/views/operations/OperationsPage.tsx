import type { ReactNode } from 'react'

import { useSession, type Deed } from '../../session/session'
import { operations as texts } from '../../texts/operations'
import { useAddress } from '../../ui/address'
import { Tabs } from '../../ui/Tabs'
import { Clients } from './Clients'
import { DeadLetters } from './DeadLetters'
import './operations.css'
import { Platforms } from './Platforms'
import { Processes } from './Processes'
import { Queues } from './Queues'
import { Schema } from './Schema'

const PARTS = [
  { id: 'dead-letters', deed: 'operate', content: () => <DeadLetters /> },
  { id: 'queues', deed: 'operate', content: () => <Queues /> },
  { id: 'processes', deed: 'operate', content: () => <Processes /> },
  { id: 'platforms', deed: 'operate', content: () => <Platforms /> },
  { id: 'clients', deed: 'administer', content: () => <Clients /> },
  { id: 'schema', deed: 'administer', content: () => <Schema /> },
] as const satisfies { id: string; deed: Deed; content: () => ReactNode }[]

/** What keeps the platform running; clients and the schema are for admins. */
export default function OperationsPage() {
  const { may } = useSession()
  const [parameters, change] = useAddress()
  return (
    <div className="page">
      <div className="page-head">
        <h1>{texts.title}</h1>
      </div>
      <div className="operations-parts">
        <Tabs
          label={texts.tabs.label}
          tabs={PARTS.filter(({ deed }) => may(deed)).map((part) => ({ ...part, name: texts.tabs[part.id] }))}
          selected={parameters.get('tab') ?? PARTS[0].id}
          onSelect={(tab) => change({ tab })}
        />
      </div>
    </div>
  )
}
