import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Bbox } from '../../../src/map/bbox'
import {
  boxOf,
  boxText,
  isFiltered,
  isWholeNumber,
  NO_FILTERS,
  queryOf,
  refsOf,
  withRef,
} from '../../../src/views/assets/filters'
import { Chance } from '../../chance'

const asked = (address: string) =>
  Object.fromEntries(Object.entries(queryOf(new URLSearchParams(address))).filter(([, value]) => value !== undefined))

test('the address says what is searched for, under the names of the gateway', () => {
  assert.deepEqual(asked(''), {})
  assert.deepEqual(asked('q=a+b&platform=demo&data_type=raster&bbox=1,2,3,4&deleted=true&tab=map&q2='), {
    q: 'a b',
    platform: 'demo',
    data_type: 'raster',
    bbox: '1,2,3,4',
    deleted: true,
  })
  assert.deepEqual(asked('q=&deleted=false'), {})
})

test('to clear the search takes all of it off the address', () => {
  const searched = new URLSearchParams('q=a&refs={}&bbox=1,2,3,4&deleted=true&platform=demo&tab=map')
  assert.ok(isFiltered(searched))
  for (const name of Object.keys(NO_FILTERS)) searched.delete(name)
  assert.equal(searched.toString(), 'tab=map')
  assert.ok(!isFiltered(searched))
})

test('references are read from the address, and nothing where it is not written well', () => {
  assert.deepEqual(refsOf(new URLSearchParams({ refs: '{"a": "x", "b": 2}' })), { a: 'x', b: 2 })
  for (const refs of ['', 'a', 'null', '1', '{']) assert.deepEqual(refsOf(new URLSearchParams({ refs })), {}, refs)
  assert.deepEqual(refsOf(new URLSearchParams()), {})
})

test('a reference is a number only where a person says so', () => {
  assert.equal(withRef({}, 'a', '17', false), '{"a":"17"}')
  assert.equal(withRef({}, 'a', '17', true), '{"a":17}')
  assert.equal(withRef({}, 'a', '017', true), '{"a":"017"}')
  assert.equal(withRef({ a: 1, b: 'x' }, 'a', '2', true), '{"b":"x","a":2}')
  assert.equal(withRef({ a: 1, b: 'x' }, 'a', '', true), '{"b":"x"}')
  assert.equal(withRef({ a: 1 }, 'a', '', false), null)
})

test('whole numbers are those that are kept exactly and written in one way', () => {
  for (const text of ['0', '-1', '42', '999999999999999']) assert.ok(isWholeNumber(text), text)
  for (const text of ['', '-', '007', '1.0', '1e3', ' 1', '9007199254740993', 'x'])
    assert.ok(!isWholeNumber(text), text)
})

test('a part of a map is asked for within the world, and no finer than a person sees', () => {
  assert.equal(boxOf([1.23456789, -2, 3, 4.00004]), '1.2346,-2,3,4')
  assert.equal(boxOf([-200, -95, 300, 95]), '-180,-90,180,90')
  assert.equal(boxOf([170, -10, 190, 10]), '170,-10,-170,10')
  assert.equal(boxOf([-190, -10, -170, 10]), '170,-10,-170,10')
  assert.equal(boxOf([-0.00001, 0, 10, 1]), '0,0,10,1')
})

test('a box has as many places as a person reads', () => {
  assert.equal(boxText([-1.005, 2, 3.14159, 4]), '-1.00, 2.00, 3.14, 4.00')
})

test('whatever a map shows is a box that the gateway takes', () => {
  const chance = new Chance(2)
  for (let round = 0; round < 2000; round += 1) {
    const [west, south] = [chance.between(-900, 900), chance.between(-120, 80)]
    const seen: Bbox = [west, south, west + chance.between(0, 400), chance.between(81, 120)]
    const [left, bottom, right, top] = boxOf(seen).split(',').map(Number) as Bbox
    for (const longitude of [left, right]) assert.ok(Math.abs(longitude) <= 180, String(seen))
    for (const latitude of [bottom, top]) assert.ok(Math.abs(latitude) <= 90, String(seen))
    const width = right > left ? right - left : right - left + 360
    assert.ok(Math.abs(width - Math.min(360, seen[2] - seen[0])) < 0.001, `${seen.join()} became ${left} to ${right}`)
  }
})
