import assert from 'node:assert/strict'
import { test } from 'node:test'

import { edgesOf, inShort } from '../../src/graph/definition'
import { graphOf, node } from './workflows'

const branch = (condition: string | null, ...next: string[]) => ({ condition, next })

test('there is one edge for each pair of nodes', () => {
  const graph = graphOf(
    node('a', 'start', ['b', 'c', 'b']),
    node('b', 'task', ['c']),
    node('c', 'end', [], { join: 'any_of' }),
  )
  assert.deepEqual(edgesOf(graph), [
    { source: 'a', target: 'b', condition: null, isOptional: false },
    { source: 'a', target: 'c', condition: null, isOptional: true },
    { source: 'b', target: 'c', condition: null, isOptional: true },
  ])
})

test('what several branches say of one way stands together', () => {
  const branches = [branch('x > 1', 'a', 'b'), branch('y', 'a'), branch(null, 'b')]
  const graph = graphOf(
    node('c', 'conditional', ['a', 'b', 'a', 'b'], { branches }),
    node('a', 'task', []),
    node('b', 'task', []),
  )
  assert.deepEqual(
    edgesOf(graph).map(({ target, condition }) => [target, condition]),
    [
      ['a', 'x > 1 or y'],
      ['b', 'x > 1 or otherwise'],
    ],
  )
})

test('a condition is cut to what tells it from others', () => {
  assert.equal(inShort('nodes.check.output.valid == true'), 'valid == true')
  assert.equal(inShort('inputs.size > 10 and not (nodes.a.output.ok)'), 'size > 10 and not ok')
  assert.equal(inShort('nodes.a.output.name.startswith(inputs.prefix)'), 'name.startswith(prefix)')
  assert.equal(inShort('otherwise'), 'otherwise')
})
