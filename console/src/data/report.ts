/** What was found in the file of a version. */

import type { AssetVersion, ValidationReport } from '../api/model'

/** Gives the report on a version's file, if that was told in a way that can be read. */
export function reportOf(version: AssetVersion): ValidationReport | null {
  const report = version.validation as Partial<ValidationReport> | null | undefined
  if (!report?.outcome) return null
  return { outcome: report.outcome, findings: report.findings ?? [], facts: report.facts ?? {} }
}
