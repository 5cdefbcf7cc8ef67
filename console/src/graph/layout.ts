/** Where the nodes and edges of a workflow are drawn: from the top down, so that edges cross little. */

import { Graph, layout as place, type Point } from '@dagrejs/dagre'

import { edgesOf, inShort, type CompiledGraph, type Edge, type NodeSpec, type NodeType } from './definition'

const WIDTH = 216
const SIZES: Record<NodeType, [number, number]> = {
  start: [116, 34],
  end: [116, 34],
  task: [WIDTH, 66],
  conditional: [WIDTH, 66],
  fan_out: [WIDTH, 92],
  fan_in: [WIDTH, 66],
}
const BETWEEN_NODES = 28
const BETWEEN_RANKS = 38
const LABEL_HEIGHT = 20
const LETTER_WIDTH = 6.4
const LONGEST_LABEL = 30
/** The last piece of an edge is straight, so that its arrow points down. */
const STRAIGHT = 8

export interface PlacedNode {
  spec: NodeSpec
  x: number
  y: number
  width: number
  height: number
}

export interface PlacedEdge extends Edge {
  id: string
  /** The line, as a path of SVG. */
  path: string
  end: Point
  label: { text: string; x: number; y: number } | null
}

export interface Layout {
  nodes: PlacedNode[]
  edges: PlacedEdge[]
}

export function layOut(graph: CompiledGraph): Layout {
  const drawing = new Graph({ directed: true })
  drawing.setGraph({ rankdir: 'TB', nodesep: BETWEEN_NODES, ranksep: BETWEEN_RANKS, edgesep: 16 })
  const specs = inOrder(graph)
  for (const spec of specs) {
    const [width, height] = SIZES[spec.type]
    drawing.setNode(spec.node_id, { width, height })
  }
  const edges = edgesOf(graph)
  for (const edge of edges) drawing.setEdge(edge.source, edge.target, labelSize(edge))
  place(drawing)
  const nodes = new Map(specs.map((spec) => [spec.node_id, placedNode(drawing, spec)]))
  return {
    nodes: [...nodes.values()],
    edges: edges.map((edge) => placedEdge(drawing, edge, nodes.get(edge.source)!, nodes.get(edge.target)!)),
  }
}

/** Gives the nodes so that each stands after those that lead to it: JSON documents keep no order. */
function inOrder(graph: CompiledGraph): NodeSpec[] {
  const open = new Map(Object.keys(graph.nodes).map((id) => [id, 0]))
  const edges = edgesOf(graph)
  for (const { target } of edges) open.set(target, (open.get(target) ?? 0) + 1)
  const order = Object.values(graph.nodes).filter((node) => open.get(node.node_id) === 0)
  for (const node of order) {
    for (const target of new Set(node.next)) {
      const left = (open.get(target) ?? 0) - 1
      open.set(target, left)
      if (left === 0) order.push(graph.nodes[target]!)
    }
  }
  return order
}

function labelOf(edge: Edge): string | null {
  if (edge.condition === null) return null
  const text = inShort(edge.condition)
  return text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text
}

function labelSize(edge: Edge): { width: number; height: number; labelpos: 'c' } {
  const label = labelOf(edge)
  return { width: label ? label.length * LETTER_WIDTH + 12 : 0, height: label ? LABEL_HEIGHT : 0, labelpos: 'c' }
}

function placedNode(drawing: Graph, spec: NodeSpec): PlacedNode {
  const { x, y, width, height } = drawing.node(spec.node_id) as Required<Point & { width: number; height: number }>
  return { spec, x: x - width / 2, y: y - height / 2, width, height }
}

function placedEdge(drawing: Graph, edge: Edge, source: PlacedNode, target: PlacedNode): PlacedEdge {
  const drawn = drawing.edge(edge.source, edge.target) as { points: Point[] } & Partial<Point>
  const start = { x: source.x + source.width / 2, y: source.y + source.height }
  const end = { x: target.x + target.width / 2, y: target.y }
  const text = labelOf(edge)
  const bends = drawn.points.slice(1, -1)
  // An edge to the next rank needs no bend on its way, but to where its label is.
  const ways = bends.length > 1 || text !== null ? bends : []
  return {
    ...edge,
    id: `${edge.source}→${edge.target}`,
    path: `${curve([start, ...ways, { x: end.x, y: end.y - STRAIGHT }])} L${at(end)}`,
    end,
    label: text === null ? null : { text, x: drawn.x!, y: drawn.y! },
  }
}

/** A line from point to point, that goes straight down at each of them. */
function curve([start, ...rest]: Point[]): string {
  let last = start!
  const bends = rest.map((point) => {
    const middle = (last.y + point.y) / 2
    const bend = `C${at({ x: last.x, y: middle })} ${at({ x: point.x, y: middle })} ${at(point)}`
    last = point
    return bend
  })
  return `M${at(start!)} ${bends.join(' ')}`
}

function at({ x, y }: Point): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`
}
