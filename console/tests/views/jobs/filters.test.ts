import assert from 'node:assert/strict'
import { test } from 'node:test'

import { jobStatusValues } from '../../../src/api/gateway'
import { filtersOf, isoOf, localOf, NO_FILTERS, queryOf } from '../../../src/views/jobs/filters'

const asked = (address: string) => queryOf(filtersOf(new URLSearchParams(address)))
const given = (address: string) => Object.fromEntries(Object.entries(asked(address)).filter(([, value]) => value))

test('the address says what of the jobs is asked for', () => {
  assert.deepEqual<unknown>(given(''), {})
  assert.deepEqual<unknown>(
    given('q=abcd&status=failed&workflow=ingest&by=ann&after=2026-03-01T00:00:00Z&before=2026-03-02T00:00:00%2B01:00'),
    {
      q: 'abcd',
      status: 'failed',
      workflow_id: 'ingest',
      submitted_by: 'ann',
      created_after: '2026-03-01T00:00:00.000Z',
      created_before: '2026-03-01T23:00:00.000Z',
    },
  )
})

test('every state can be asked for', () => {
  for (const status of jobStatusValues) assert.equal(asked(`status=${status}`).status, status)
})

test('what an address says wrongly, or of something else, is not asked for', () => {
  assert.deepEqual<unknown>(given('status=asleep&after=yesterday&before=2026-13-01&q=%20%20&tab=graph&cursor=x'), {})
  assert.equal(asked('q=%20abcd%20').q, 'abcd')
})

test('to clear the filters takes all of them off the address', () => {
  assert.deepEqual(Object.keys(NO_FILTERS).sort(), Object.keys(filtersOf(new URLSearchParams())).sort())
  for (const value of Object.values(NO_FILTERS)) assert.equal(value, null)
})

test('a time of the address is that of the place in its field', () => {
  assert.equal(localOf('2026-03-01T04:00:00.000Z'), '2026-03-01T09:30')
  assert.equal(isoOf('2026-03-01T09:30'), '2026-03-01T04:00:00.000Z')
  for (const nothing of ['', 'yesterday']) {
    assert.equal(localOf(nothing), '')
    assert.equal(isoOf(nothing), '')
  }
})

test('a field keeps what is typed into it, also a year that is not yet whole', () => {
  const typed = ['2026-12-31T23:59', '0002-03-01T09:30', '0020-03-01T09:30', '0202-03-01T09:30', '1999-01-01T00:00']
  for (const local of typed) assert.equal(localOf(isoOf(local)), local)
})
