import assert from 'node:assert/strict'
import { test } from 'node:test'

import { bySeverity, type Finding, type Severity } from '../../src/parts/severity'

const finding = (severity: Severity, code: string): Finding => ({
  severity,
  code,
  what: 'What',
  where: 'file',
  how_to_fix: 'How',
})

test('the most severe findings come first, and the order of the file is kept within a severity', () => {
  const told = [
    finding('info', 'other_crs'),
    finding('fix', 'invalid_geometries'),
    finding('info', 'not_cog'),
    finding('warning', 'outside_area_of_use'),
    finding('reject', 'no_crs'),
  ]
  assert.deepEqual(
    bySeverity(told).map(({ code }) => code),
    ['no_crs', 'invalid_geometries', 'outside_area_of_use', 'other_crs', 'not_cog'],
  )
})
