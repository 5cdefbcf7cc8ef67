import assert from 'node:assert/strict'
import { test } from 'node:test'

import { edgesOf } from '../../src/graph/definition'
import { layOut, type PlacedNode } from '../../src/graph/layout'
import { Chance } from '../chance'
import { anyGraph, graphOf, node } from './workflows'

/** Some workflows of any kind, each laid out. */
const SOME = Array.from({ length: 12 }, (_, seed) => {
  const graph = anyGraph(new Chance(seed))
  return { graph, layout: layOut(graph) }
})

const overlap = (one: PlacedNode, other: PlacedNode) =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height

test('every node is placed once, after those that lead to it, and on none of the others', () => {
  for (const { graph, layout } of SOME) {
    const { nodes } = layout
    const ids = nodes.map(({ spec }) => spec.node_id)
    assert.deepEqual([...ids].sort(), Object.keys(graph.nodes).sort())
    for (const { source, target } of edgesOf(graph)) assert.ok(ids.indexOf(source) < ids.indexOf(target))
    nodes.forEach((one, place) => {
      assert.ok([one.x, one.y].every(Number.isFinite))
      for (const other of nodes.slice(place + 1)) assert.ok(!overlap(one, other), `${one.spec.node_id} is hidden`)
    })
  }
})

test('every edge is drawn once, downwards, from the foot of a node to the head of the next', () => {
  for (const { graph, layout } of SOME) {
    const { nodes, edges } = layout
    const placed = new Map(nodes.map((each) => [each.spec.node_id, each]))
    const pairs = (all: { source: string; target: string }[]) => all.map(({ source, target }) => `${source} ${target}`)
    assert.deepEqual(pairs(edges).sort(), pairs(edgesOf(graph)).sort())
    assert.equal(new Set(edges.map(({ id }) => id)).size, edges.length)
    for (const { source, target, path, end } of edges) {
      const [from, to] = [placed.get(source)!, placed.get(target)!]
      assert.ok(from.y + from.height < to.y, `${source} is not above ${target}`)
      assert.deepEqual(end, { x: to.x + to.width / 2, y: to.y })
      const foot = `M${(from.x + from.width / 2).toFixed(1)},${(from.y + from.height).toFixed(1)} `
      assert.ok(path.startsWith(foot) && path.endsWith(` L${end.x.toFixed(1)},${end.y.toFixed(1)}`), path)
      assert.match(path, /^M[-\d., CL]+$/)
    }
  }
})

test('the same workflow is always drawn in the same way', () => {
  for (const { graph, layout } of SOME.slice(0, 4)) assert.deepEqual(layOut(structuredClone(graph)), layout)
})

test('ways of a condition are labelled with what is said of them, cut where that is long', () => {
  const long = `nodes.a.output.value in [${'1, '.repeat(20)}1]`
  const branches = [
    { condition: 'inputs.size > 1', next: ['a'] },
    { condition: long, next: ['b'] },
    { condition: null, next: ['c'] },
  ]
  const { edges } = layOut(
    graphOf(
      node('if', 'conditional', ['a', 'b', 'c'], { branches }),
      ...['a', 'b', 'c'].map((id) => node(id, 'task', ['end'])),
      node('end', 'end', []),
    ),
  )
  const labels = new Map(edges.map(({ id, label }) => [id, label]))
  assert.equal(labels.get('if→a')?.text, 'size > 1')
  assert.equal(labels.get('if→c')?.text, 'otherwise')
  assert.match(labels.get('if→b')!.text, /^value in \[1, 1.*…$/)
  assert.ok(labels.get('if→b')!.text.length <= 30)
  assert.equal(labels.get('a→end'), null)
  const middles = ['if→a', 'if→b', 'if→c'].map((id) => labels.get(id)!.x)
  assert.equal(new Set(middles).size, 3, 'labels do not lie on each other')
})

test('nodes that follow each other stand below each other, whatever their sizes', () => {
  const { nodes } = layOut(graphOf(node('a', 'start', ['b']), node('b', 'fan_out', ['c']), node('c', 'end', [])))
  assert.equal(new Set(nodes.map(({ width }) => width)).size, 2)
  assert.equal(new Set(nodes.map(({ x, width }) => x + width / 2)).size, 1)
})

test('a fan-out is one node, however many children it has', () => {
  const { nodes } = layOut(graphOf(node('each', 'fan_out', ['all']), node('all', 'fan_in', [], { fan_out: 'each' })))
  assert.deepEqual(
    nodes.map(({ spec }) => spec.node_id),
    ['each', 'all'],
  )
})
