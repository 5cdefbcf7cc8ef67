import { Link } from 'react-router'

import type { components } from '../../api/gateway'
import { workflows } from '../../texts/workflows'
import { shortId } from '../../ui/format'
import { Empty } from '../../ui/notices'
import { Card, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'

const texts = workflows.versions

type Version = components['schemas']['WorkflowVersion']

interface Props {
  versions: Version[]
  current: string
  shown: string
}

/** The versions that jobs ran; each can be looked at. */
export function Versions({ versions, current, shown }: Props) {
  const columns: Column<Version>[] = [
    {
      name: texts.version,
      cell: (version) => <VersionLink version={version} current={current} shown={shown} />,
    },
    { name: texts.hash, cell: ({ workflow_hash }) => <span className="mono">{shortId(workflow_hash)}</span> },
    { name: texts.since, cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <Card title={texts.title} flush>
      {versions.length > 0 ? (
        <Table label={texts.list} columns={columns} rows={versions} rowKey={({ workflow_hash }) => workflow_hash} />
      ) : (
        <Empty>{texts.none}</Empty>
      )}
    </Card>
  )
}

function VersionLink({ version, current, shown }: { version: Version; current: string; shown: string }) {
  const { workflow_hash, version: name } = version
  const isCurrent = workflow_hash === current
  return (
    <span className="workflow-version">
      <Link
        to={isCurrent ? '.' : `?version=${workflow_hash}`}
        aria-current={workflow_hash === shown || undefined}
        aria-label={texts.show(name)}
      >
        {name}
      </Link>
      {isCurrent && <span className="badge tone-good">{texts.current}</span>}
      {workflow_hash === shown && !isCurrent && <span className="badge tone-busy">{texts.shown}</span>}
    </span>
  )
}
