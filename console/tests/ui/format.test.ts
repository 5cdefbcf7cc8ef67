import assert from 'node:assert/strict'
import { test } from 'node:test'

import { between, bytes, count, dateTime, dateTimeUtc, duration, relative, shortId } from '../../src/ui/format'

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

test('a length of time is told by its two largest parts', () => {
  const lengths: [number, string][] = [
    [0, '0 ms'],
    [0.0004, '0 ms'],
    [0.34, '340 ms'],
    [0.9994, '999 ms'],
    [1, '1.0 s'],
    [9.94, '9.9 s'],
    [10, '10 s'],
    [59, '59 s'],
    [MINUTE, '1 min'],
    [MINUTE + 1, '1 min 1 s'],
    [HOUR - 1, '59 min 59 s'],
    [HOUR, '1 h'],
    [HOUR + MINUTE - 1, '1 h'],
    [2 * HOUR + 5 * MINUTE, '2 h 5 min'],
    [DAY - 1, '23 h 59 min'],
    [DAY, '1 d'],
    [DAY + HOUR, '1 d 1 h'],
    [100 * DAY + 3 * MINUTE, '100 d'],
  ]
  for (const [seconds, text] of lengths) assert.equal(duration(seconds), text)
})

test('a length of time that is rounded up is told in the next unit', () => {
  assert.equal(duration(0.9996), '1.0 s')
  assert.equal(duration(9.96), '10 s')
  assert.equal(duration(MINUTE - 0.1), '1 min')
  assert.equal(duration(HOUR - 0.1), '1 h')
})

test('a longer time is never told as a shorter one', () => {
  const size: Record<string, number> = { ms: 0.001, s: 1, min: MINUTE, h: HOUR, d: DAY }
  const read = (text: string) => {
    const words = text.split(' ')
    return words.reduce((sum, word, place) => (place % 2 ? sum + Number(words[place - 1]) * size[word]! : sum), 0)
  }
  let last = 0
  for (let seconds = 0; seconds < 3 * DAY; seconds = seconds * 1.01 + 0.0007) {
    const told = read(duration(seconds))
    assert.ok(told >= last, `${seconds} s`)
    // At most the smaller of the two parts that are told is missing.
    assert.ok(Math.abs(seconds - told) <= Math.max(0.5, seconds / 24), `${seconds} s are not ${told} s`)
    last = told
  }
})

test('when something was, or will be, is told by its largest part', () => {
  const now = Date.parse('2026-03-01T12:00:00Z')
  const ago = (seconds: number) => relative(new Date(now - 1000 * seconds), now)
  assert.equal(ago(0), 'just now')
  assert.equal(ago(4.9), 'just now')
  assert.equal(ago(-4.9), 'just now')
  assert.equal(ago(5), '5 s ago')
  assert.equal(ago(59.9), '59 s ago')
  assert.equal(ago(MINUTE), '1 min ago')
  assert.equal(ago(HOUR - 1), '59 min ago')
  assert.equal(ago(HOUR), '1 h ago')
  assert.equal(ago(DAY), '1 d ago')
  assert.equal(ago(400 * DAY), '400 d ago')
  assert.equal(ago(-90), 'in 1 min')
  assert.equal(relative('2026-03-01T11:58:00Z', now), '2 min ago')
})

test('the time between two is in seconds, and until now where there is no end', (context) => {
  context.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-03-01T12:00:10Z') })
  assert.equal(between('2026-03-01T12:00:00Z', '2026-03-01T12:00:02.500Z'), 2.5)
  assert.equal(between('2026-03-01T12:00:00Z', null), 10)
  assert.equal(between(null, '2026-03-01T12:00:00Z'), null)
  assert.equal(between(undefined, undefined), null)
})

test('bytes are told in the unit that needs the fewest digits', () => {
  const sizes: [number, string][] = [
    [0, '0 B'],
    [1, '1 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [1049, '1.0 kB'],
    [1050, '1.1 kB'],
    [999_949, '999.9 kB'],
    [999_950, '1.0 MB'],
    [1_000_000, '1.0 MB'],
    [2_500_000_000, '2.5 GB'],
    [1e12, '1.0 TB'],
    [5e15, '5000.0 TB'],
  ]
  for (const [size, text] of sizes) assert.equal(bytes(size), text)
})

test('a time is that of the place, or of the world, and says so', () => {
  assert.match(dateTime('2026-03-01T12:00:00Z'), /^1 Mar 2026, 17:30:00 (GMT\+5:30|IST)$/)
  assert.equal(dateTimeUtc('2026-03-01T12:00:00Z'), '1 Mar 2026, 12:00:00 UTC')
})

test('numbers have commas, and ids are cut', () => {
  assert.equal(count(1234567), '1,234,567')
  assert.equal(count(0), '0')
  assert.equal(shortId('0123456789abcdef0123456789abcdef'), '0123456789abcdef')
  assert.equal(shortId('short'), 'short')
})
