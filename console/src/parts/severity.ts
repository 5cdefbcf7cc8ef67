import type { ValidationReport } from '../api/model'

export type Finding = NonNullable<ValidationReport['findings']>[number]
export type Severity = Finding['severity']

const ORDER: Severity[] = ['reject', 'fix', 'warning', 'info']

/** Sorts findings by severity, the most severe first; those of one severity keep their order. */
export function bySeverity(findings: readonly Finding[]): Finding[] {
  return [...findings].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity))
}
