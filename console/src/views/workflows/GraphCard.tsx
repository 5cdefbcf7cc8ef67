import { lazy, Suspense } from 'react'
import { Link } from 'react-router'

import type { CompiledGraph } from '../../graph/definition'
import { workflows as texts } from '../../texts/workflows'
import { Loading, Notice } from '../../ui/notices'
import { Card } from '../../ui/parts'

const WorkflowGraph = lazy(() =>
  import('../../graph/WorkflowGraph').then(({ WorkflowGraph }) => ({ default: WorkflowGraph })),
)

interface Props {
  /** As the API gives it, whose documents do not tell what a graph is made of. */
  graph: Record<string, unknown>
  isCurrent: boolean
}

export function GraphCard({ graph, isCurrent }: Props) {
  const compiled = graph as unknown as CompiledGraph
  return (
    <Card
      title={texts.graph}
      flush
      className="workflow-graph-card"
      actions={<span className="soft">{texts.version(compiled.version)}</span>}
    >
      {!isCurrent && (
        <Notice kind="warning">
          {texts.earlier}{' '}
          <Link to="." replace>
            {texts.toCurrent}
          </Link>
        </Notice>
      )}
      <div className="workflow-drawing">
        <Suspense fallback={<Loading />}>
          <WorkflowGraph graph={compiled} label={texts.graphOf(compiled.name, compiled.version)} />
        </Suspense>
      </div>
    </Card>
  )
}
