import type { UseQueryResult } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef, type RefObject } from 'react'

import type { JobDetail, NodeListItem } from '../../api/model'
import type { CompiledGraph } from '../../graph/definition'
import { TypeIcon } from '../../graph/icons'
import { WorkflowGraph } from '../../graph/WorkflowGraph'
import { graph as graphTexts } from '../../texts/graph'
import { job as texts } from '../../texts/job'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { count } from '../../ui/format'
import { Card, StateBadge } from '../../ui/parts'
import { NodePanel } from './NodePanel'
import { statesOf } from './states'

interface Props {
  job: JobDetail
  graph: UseQueryResult<CompiledGraph, Error>
  nodes: readonly NodeListItem[]
}

/** The graph, and beside it one node, or the list of all of them. */
export function GraphTab({ job, graph, nodes }: Props) {
  const [parameters, change] = useAddress()
  const states = useMemo(() => statesOf(nodes), [nodes])
  const selected = parameters.get('node')
  const drawn = selected?.split('__')[0] // a child is drawn as its fan-out
  const panel = useRef<HTMLDivElement>(null)
  const lookAt = useLook(panel, selected)
  const select = useCallback(
    (node: string | null) => {
      lookAt()
      change({ node, children: null })
    },
    [change, lookAt],
  )
  return (
    <div className="job-graph">
      <section className="card job-graph-drawing">
        <Answer query={graph}>
          {(known) => (
            <WorkflowGraph
              graph={known}
              states={states}
              selected={drawn}
              onSelect={select}
              label={texts.graphOf(known.name)}
            />
          )}
        </Answer>
      </section>
      <div ref={panel}>
        {selected ? (
          <NodePanel key={selected} job={job} nodeId={selected} spec={graph.data?.nodes[selected]} onSelect={select} />
        ) : (
          <NodeList nodes={nodes} onSelect={select} />
        )}
      </div>
    </div>
  )
}

/** Brings the panel into sight once another node was chosen here: on a narrow screen it is below the graph. */
function useLook(panel: RefObject<HTMLElement | null>, selected: string | null): () => void {
  const wasChosen = useRef(false)
  useEffect(() => {
    if (wasChosen.current) panel.current?.scrollIntoView({ block: 'nearest' })
  }, [panel, selected])
  return useCallback(() => {
    wasChosen.current = true
  }, [])
}

function NodeList({ nodes, onSelect }: { nodes: readonly NodeListItem[]; onSelect: (nodeId: string) => void }) {
  return (
    <Card title={texts.nodes} flush className="job-panel">
      <ul className="job-rows">
        {nodes.map((node) => (
          <li key={node.node_id}>
            <button type="button" onClick={() => onSelect(node.node_id)}>
              <TypeIcon type={node.node_type} />
              <span className="truncate">{node.node_id}</span>
              <span className="soft">{sideNote(node)}</span>
              <StateBadge state={node.status} />
            </button>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function sideNote(node: NodeListItem): string {
  if (node.children_total > 0) return graphTexts.done(count(node.children_done), count(node.children_total))
  return node.retry_count > 0 ? graphTexts.retries(node.retry_count) : ''
}
