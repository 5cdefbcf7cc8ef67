import assert from 'node:assert/strict'
import { test } from 'node:test'

import {
  around,
  asBbox,
  inOneWorld,
  middle,
  onMap,
  outline,
  rolled,
  span,
  unrolled,
  type Bbox,
} from '../../src/map/bbox'
import { Chance } from '../chance'

const ACROSS: Bbox = [170, -20, -160, 10]

/** Whether a box, in degrees from -180 to 180, has this longitude. */
const has = ([west, , east]: Bbox, longitude: number, slack = 1e-6) =>
  west <= east
    ? longitude >= west - slack && longitude <= east + slack
    : longitude >= west - slack || longitude <= east + slack

const width = (box: Bbox) => unrolled(box)[2] - box[0]

/** Boxes as data have them: anywhere, of any size, and some across the antimeridian. */
function anyBox(chance: Chance): Bbox {
  const [west, south] = [chance.between(-180, 180), chance.between(-90, 80)]
  const east = west + chance.between(0, chance.one([1, 20, 300]))
  return [west, south, east > 180 ? east - 360 : east, chance.between(south, 90)]
}

test('a box is four numbers, and everything else is none', () => {
  assert.deepEqual(asBbox([1, 2, 3, 4]), [1, 2, 3, 4])
  for (const none of [null, undefined, [], [1, 2, 3], [1, 2, 0, 3, 4, 9], [1, 2, NaN, 4], [1, 2, 3, Infinity]]) {
    assert.equal(asBbox(none), null)
  }
})

test('a box across the antimeridian goes on beyond 180 degrees on a map', () => {
  assert.deepEqual(unrolled(ACROSS), [170, -20, 200, 10])
  assert.deepEqual(unrolled([-10, 0, 10, 5]), [-10, 0, 10, 5])
  assert.equal(span(ACROSS), 30)
  assert.deepEqual(middle(ACROSS), [185, -5])
  assert.equal(span([0, -40, 1, 40]), 80)
})

test('what is too near the poles for a map is cut', () => {
  assert.deepEqual(onMap([-10, -90, 10, 90]), [-10, -85, 10, 85])
  assert.deepEqual(outline([170, -90, -170, 10]).geometry.coordinates, [
    [
      [170, -85],
      [190, -85],
      [190, 10],
      [170, 10],
      [170, -85],
    ],
  ])
})

test('what a map shows is the same part of the world in its own degrees', () => {
  assert.deepEqual(rolled([170, 0, 200, 1]), [170, 0, -160, 1])
  assert.deepEqual(rolled([-190, 0, -170, 1]), [170, 0, -170, 1])
  assert.deepEqual(rolled([350, 0, 370, 1]), [-10, 0, 10, 1])
  assert.deepEqual(rolled([-900, 0, 900, 1]), [-180, 0, 180, 1])
  const chance = new Chance(4)
  for (let round = 0; round < 500; round += 1) {
    const box = anyBox(chance)
    const turns = 360 * chance.whole(-3, 3)
    const [west, south, east, north] = unrolled(box)
    const again = rolled([west + turns, south, east + turns, north])
    again.forEach((value, place) => assert.ok(Math.abs(value - box[place]!) < 1e-9, `${box.join()}: ${again.join()}`))
  }
})

test('in one world, a box across the antimeridian is two', () => {
  assert.deepEqual(inOneWorld([-10, 0, 10, 5]), [[-10, 0, 10, 5]])
  assert.deepEqual(inOneWorld([170, 0, 180, 5]), [[170, 0, 180, 5]])
  assert.deepEqual(inOneWorld(ACROSS), [
    [170, -20, 180, 10],
    [-180, -20, -160, 10],
  ])
  const chance = new Chance(5)
  for (let round = 0; round < 500; round += 1) {
    const box = anyBox(chance)
    const parts = inOneWorld(box)
    for (const [west, , east] of parts) assert.ok(west <= east && west >= -180 && east <= 180)
    assert.ok(Math.abs(parts.reduce((sum, part) => sum + width(part), 0) - width(box)) < 1e-9)
  }
})

test('the box around others leaves the widest gap out, wherever that is', () => {
  assert.equal(around([]), null)
  assert.deepEqual(around([[1, 2, 3, 4]]), [1, 2, 3, 4])
  assert.deepEqual(around([ACROSS]), ACROSS)
  assert.deepEqual(
    around([
      [170, 0, 175, 1],
      [-175, -5, -170, 0],
    ]),
    [170, -5, -170, 1],
  )
  assert.deepEqual(
    around([
      [-10, 0, -5, 1],
      [20, 0, 30, 9],
    ]),
    [-10, 0, 30, 9],
  )
  assert.deepEqual(
    around([
      [-180, -90, 180, 90],
      [1, 1, 2, 2],
    ]),
    [-180, -90, 180, 90],
  )
  assert.deepEqual(
    around([
      [-180, 0, 0, 1],
      [0, 0, 180, 1],
    ]),
    [-180, 0, 180, 1],
  )
})

test('the box around others holds them all, and no smaller one does', () => {
  const chance = new Chance(6)
  for (let round = 0; round < 500; round += 1) {
    const boxes = Array.from({ length: chance.whole(1, 6) }, () => anyBox(chance))
    const whole = around(boxes)!
    for (const box of boxes) {
      assert.ok(has(whole, box[0]) && has(whole, box[2]), `${boxes.join(' | ')}: ${whole.join()}`)
      assert.ok(whole[1] <= box[1] && whole[3] >= box[3])
    }
    // A smaller one would begin with one of them, too.
    const smallest = Math.min(360, ...boxes.map(([west]) => widthFrom(west, boxes)))
    assert.ok(Math.abs(width(whole) - smallest) < 1e-6, `${boxes.join(' | ')}: ${whole.join()}`)
  }
})

/** How wide a box must be that begins there and holds all of them. */
function widthFrom(start: number, boxes: Bbox[]): number {
  return Math.max(...boxes.map((box) => ((box[0] - start + 720) % 360) + width(box)))
}
