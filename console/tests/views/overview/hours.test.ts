import assert from 'node:assert/strict'
import { test } from 'node:test'

import { busiest, everyHour, HOUR_MS, roundTop, stacked, total, type Hour } from '../../../src/views/overview/hours'
import { during, told } from '../../../src/views/overview/hourTexts'
import { Chance } from '../../chance'

const NOW = Date.parse('2026-03-01T12:34:56Z')
const counted = (hour: string, completed: number, failed = 0, cancelled = 0) => ({ hour, completed, failed, cancelled })
const hourWith = (completed: number, failed: number, cancelled: number): Hour => ({
  start: 0,
  completed,
  failed,
  cancelled,
})

test('every hour of the last day is there once, with those in which nothing ended', () => {
  const hours = everyHour([counted('2026-03-01T09:00:00Z', 3, 1), counted('2026-03-01T12:00:00Z', 5)], NOW)
  assert.equal(hours.length, 25)
  assert.equal(hours[0]!.start, Date.parse('2026-02-28T12:00:00Z'))
  assert.equal(hours.at(-1)!.start, Date.parse('2026-03-01T12:00:00Z'))
  hours.slice(1).forEach((hour, place) => assert.equal(hour.start - hours[place]!.start, HOUR_MS))
  assert.deepEqual(
    hours.filter((hour) => total(hour) > 0),
    [
      { start: Date.parse('2026-03-01T09:00:00Z'), completed: 3, failed: 1, cancelled: 0 },
      { start: Date.parse('2026-03-01T12:00:00Z'), completed: 5, failed: 0, cancelled: 0 },
    ],
  )
})

test('what ended before the hours that are shown is not counted', () => {
  const hours = everyHour([counted('2026-02-28T11:00:00Z', 9), counted('2026-02-28T12:00:00Z', 1)], NOW)
  assert.equal(
    hours.reduce((sum, hour) => sum + total(hour), 0),
    1,
  )
})

test('an hour is told in the time of the place', () => {
  const hour = everyHour([counted('2026-03-01T12:00:00Z', 1200, 2, 1)], NOW).at(-1)!
  assert.equal(during(hour), '17:30–18:30')
  assert.equal(told(hour), '17:30–18:30: 1,200 completed, 2 failed, 1 cancelled')
})

test('the busiest hour is the first of those in which most ended', () => {
  const hours = everyHour([counted('2026-03-01T09:00:00Z', 3, 1, 1), counted('2026-03-01T11:00:00Z', 5)], NOW)
  assert.equal(busiest(hours)?.start, Date.parse('2026-03-01T09:00:00Z'))
  assert.equal(busiest(everyHour([], NOW)), null)
})

test('the top of the axis is round, not far above the highest bar, and has a whole half', () => {
  const tops: [number, number][] = [
    [0, 2],
    [1, 2],
    [2, 2],
    [3, 4],
    [9, 10],
    [10, 10],
    [11, 20],
    [999, 1000],
    [1000, 1000],
    [1001, 2000],
  ]
  for (const [highest, top] of tops) assert.equal(roundTop(highest), top)
  for (let highest = 1; highest < 3_000_000; highest = Math.ceil(highest * 1.07)) {
    const top = roundTop(highest)
    assert.ok(top >= highest && (top <= 2 * highest || top === 2), `${highest}: ${top}`)
    assert.ok(Number.isInteger(top / 2), `${highest}: ${top}`)
  }
})

test('the parts of a bar stand on each other, fit the chart, and are all seen', () => {
  const chance = new Chance(1)
  const size = 150
  for (let round = 0; round < 2000; round += 1) {
    const some = () => (chance.part() < 0.3 ? 0 : Math.floor(10 ** chance.between(0, 5)))
    const hour = hourWith(some(), some(), some())
    const parts = stacked(hour, roundTop(total(hour)), size)
    const ends = (['completed', 'failed', 'cancelled'] as const).filter((end) => hour[end] > 0)
    assert.deepEqual(
      parts.map(({ end }) => end),
      ends,
    )
    let below = size
    for (const { top, height } of parts) {
      assert.ok(height > 1.9, `${JSON.stringify(hour)}: ${height} pixels are not seen`)
      assert.ok(top >= -1e-9, `${JSON.stringify(hour)}: it leaves the chart`)
      assert.ok(Math.abs(top + height - below) < 1e-9, `${JSON.stringify(hour)}: it does not stand on what is below it`)
      below = top
    }
  }
})

test('the parts of a bar are as high as they say, where that can be seen', () => {
  assert.deepEqual(stacked(hourWith(50, 25, 0), 100, 200), [
    { end: 'completed', top: 100, height: 100 },
    { end: 'failed', top: 50, height: 50 },
  ])
  assert.deepEqual(stacked(hourWith(0, 0, 0), 100, 200), [])
})
