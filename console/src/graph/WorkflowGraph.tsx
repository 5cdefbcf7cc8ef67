/** Draws a compiled workflow: its definition, or how a job stands in it. */

import {
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type FitViewOptions,
  type NodeChange,
  type OnNodesChange,
} from '@xyflow/react'
import '@xyflow/react/dist/base.css'
import { useCallback, useEffect, useMemo, useRef, type TouchEvent } from 'react'

import { graph as texts } from '../texts/graph'
import { Button } from '../ui/Button'
import type { CompiledGraph, NodeState } from './definition'
import './graph.css'
import { layOut, type Layout } from './layout'
import { draw, type Picture, type States, type StepNode } from './picture'
import { StepBox } from './StepBox'
import { WayLine } from './WayLine'

export type { CompiledGraph, NodeState }

interface Props {
  graph: CompiledGraph
  /** How the nodes stand, by their ids; without them the definition alone is drawn. */
  states?: States
  selected?: string
  onSelect?: (nodeId: string) => void
  /** What the drawing is of, for those who cannot see it. */
  label: string
}

const NODE_TYPES = { step: StepBox }
const EDGE_TYPES = { way: WayLine }
const FIT: FitViewOptions = { padding: 0.06, maxZoom: 1.1 }
const WORDS = { 'node.a11yDescription.default': texts.select }

export function WorkflowGraph({ graph, states, selected, onSelect, label }: Props) {
  const layout = useMemo(() => layOut(graph), [graph])
  const { nodes, edges } = usePicture(layout, states, selected)
  return (
    <div className="workflow-graph" role="group" aria-label={label} onTouchStartCapture={leaveOneFinger}>
      <ReactFlowProvider>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onNodesChange={useSelection(onSelect)}
          // What is selected already may stand for something within it, and is not selected once more.
          onNodeClick={(_, { id, selected: isSelected }) => isSelected && onSelect?.(id)}
          ariaLabelConfig={WORDS}
          fitView
          fitViewOptions={FIT}
          minZoom={0.15}
          maxZoom={2}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={onSelect !== undefined}
          elementsSelectable={onSelect !== undefined}
          deleteKeyCode={null}
          multiSelectionKeyCode={null}
          selectionKeyCode={null}
          preventScrolling={false} // the wheel moves the page; with the control key it zooms
        >
          <View layout={layout} />
        </ReactFlow>
      </ReactFlowProvider>
    </div>
  )
}

/** One finger moves the page, two move and zoom the drawing: else nobody with a small screen gets past it. */
function leaveOneFinger(event: TouchEvent) {
  if (event.touches.length === 1) event.stopPropagation()
}

function usePicture(layout: Layout, states: States | undefined, selected: string | undefined): Picture {
  const last = useRef<Picture>(undefined)
  const picture = useMemo(() => draw(layout, states, selected, last.current), [layout, states, selected])
  useEffect(() => {
    last.current = picture
  }, [picture])
  return picture
}

/** Who selects a node, by mouse or by key, is told of here. */
function useSelection(onSelect: Props['onSelect']): OnNodesChange<StepNode> {
  return useCallback(
    (changes: NodeChange<StepNode>[]) => {
      for (const change of changes) {
        if (change.type === 'select' && change.selected) onSelect?.(change.id)
      }
    },
    [onSelect],
  )
}

function View({ layout }: { layout: Layout }) {
  const { fitView, zoomIn, zoomOut } = useReactFlow()
  useEffect(() => void fitView(FIT), [layout, fitView])
  return (
    <div className="graph-controls" role="group" aria-label={texts.controls}>
      <Button aria-label={texts.zoomIn} title={texts.zoomIn} onClick={() => void zoomIn()}>
        +
      </Button>
      <Button aria-label={texts.zoomOut} title={texts.zoomOut} onClick={() => void zoomOut()}>
        −
      </Button>
      <Button aria-label={texts.fit} title={texts.fit} onClick={() => void fitView(FIT)}>
        ⤢
      </Button>
    </div>
  )
}
