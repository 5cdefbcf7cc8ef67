import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'

import { content, orchestrator } from '../../api/client'
import type { Platform } from '../../api/model'
import { platforms } from '../../data/platforms'
import { useMay } from '../../session/session'
import { operations } from '../../texts/operations'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { Dialog } from '../../ui/Dialog'
import { Empty } from '../../ui/notices'
import { Card, StateBadge, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { PlatformDialog } from './PlatformDialog'

const texts = operations.platforms

/** What a dialog was opened for. */
type Wanted = { deed: 'add' } | { deed: 'change' | 'toggle'; platform: Platform }

/** The registry of partners, those too that take no submissions. */
export function Platforms() {
  const administers = useMay('administer')
  const client = useQueryClient()
  const found = useQuery(platforms())
  const [wanted, setWanted] = useState<Wanted | null>(null)
  const columns = administers ? [...COLUMNS, actions(setWanted)] : COLUMNS
  const add = administers && <Button onClick={() => setWanted({ deed: 'add' })}>{texts.add}</Button>
  return (
    <Card title={texts.label} actions={add} flush>
      <Answer query={found}>
        {({ items }) =>
          items.length > 0 ? (
            <Table label={texts.label} columns={columns} rows={items} rowKey={({ platform_id: id }) => id} />
          ) : (
            <Empty>{texts.none}</Empty>
          )
        }
      </Answer>
      {wanted && (
        <Asking
          wanted={wanted}
          onDone={() => void client.invalidateQueries({ queryKey: ['platforms'] })}
          onClose={() => setWanted(null)}
        />
      )}
    </Card>
  )
}

const COLUMNS: Column<Platform>[] = [
  { name: texts.platform, cell: (platform) => <Name platform={platform} /> },
  { name: texts.required, cell: (platform) => <Refs names={platform.required_refs} /> },
  { name: texts.optional, cell: (platform) => <Refs names={platform.optional_refs ?? []} /> },
  { name: texts.version, cell: (platform) => <Refs names={[platform.version_ref]} /> },
  { name: texts.sources, cell: (platform) => <Refs names={platform.source_containers ?? []} /> },
  { name: texts.state, cell: ({ is_active }) => <StateBadge state={is_active ? 'active' : 'disabled'} /> },
  { name: texts.since, cell: (platform) => <Time at={platform.created_at} /> },
]

function actions(onWant: (wanted: Wanted) => void): Column<Platform> {
  return {
    name: texts.actions,
    cell: (platform) => {
      const toggle = platform.is_active ? texts.deactivate : texts.activate
      return (
        <div className="operations-actions">
          <Button
            kind="quiet"
            aria-label={texts.ofPlatform(texts.change, platform.platform_id)}
            onClick={() => onWant({ deed: 'change', platform })}
          >
            {texts.change}
          </Button>
          <Button
            kind="quiet"
            aria-label={texts.ofPlatform(toggle, platform.platform_id)}
            onClick={() => onWant({ deed: 'toggle', platform })}
          >
            {toggle}
          </Button>
        </div>
      )
    },
  }
}

function Name({ platform }: { platform: Platform }) {
  return (
    <>
      {platform.display_name}
      <code className="operations-below">{platform.platform_id}</code>
      {platform.description && <span className="operations-below soft">{platform.description}</span>}
    </>
  )
}

function Refs({ names }: { names: string[] }) {
  return <code>{names.join(', ')}</code>
}

interface AskingProps {
  wanted: Wanted
  onDone: () => void
  onClose: () => void
}

function Asking({ wanted, onDone, onClose }: AskingProps) {
  if (wanted.deed === 'toggle') return <ToggleDialog platform={wanted.platform} onDone={onDone} onClose={onClose} />
  const platform = wanted.deed === 'change' ? wanted.platform : null
  return <PlatformDialog platform={platform} onDone={onDone} onClose={onClose} />
}

interface ToggleProps {
  platform: Platform
  onDone: () => void
  onClose: () => void
}

function ToggleDialog({ platform, onDone, onClose }: ToggleProps) {
  const { is_active: isActive, display_name: name } = platform

  async function confirm() {
    const params = { path: { platform_id: platform.platform_id } }
    await content(orchestrator.PATCH('/api/v1/platforms/{platform_id}', { params, body: { is_active: !isActive } }))
    onDone()
  }

  return (
    <Dialog
      title={isActive ? texts.deactivating(name) : texts.activating(name)}
      action={isActive ? texts.deactivate : texts.activate}
      kind={isActive ? 'danger' : 'primary'}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>{isActive ? texts.aboutDeactivate : texts.aboutActivate}</p>
    </Dialog>
  )
}
