import type { ValidationReport } from '../api/model'
import { parts } from '../texts/parts'
import { bySeverity, type Severity } from './severity'
import './parts.css'

const texts = parts.validation

type Outcome = ValidationReport['outcome']

const OUTCOME_TONES: Record<Outcome, string> = { ok: 'good', fix: 'warn', reject: 'bad' }
const SEVERITY_TONES: Record<Severity, string> = { reject: 'bad', fix: 'warn', warning: 'warn', info: 'idle' }

export function OutcomeBadge({ outcome }: { outcome: Outcome }) {
  return <span className={`badge tone-${OUTCOME_TONES[outcome]}`}>{texts.outcomes[outcome]}</span>
}

/** What was found in the submitted file, the most important first. */
export function Findings({ report }: { report: ValidationReport | null }) {
  if (report === null) return <p className="soft">{texts.none}</p>
  const { findings = [] } = report
  if (findings.length === 0) return <p className="soft">{texts.noFindings}</p>
  return (
    <ul className="findings">
      {bySeverity(findings).map((finding, place) => (
        <li key={place}>
          <p>
            <span className={`badge tone-${SEVERITY_TONES[finding.severity]}`}>
              {texts.severities[finding.severity]}
            </span>{' '}
            {finding.what}
          </p>
          <p className="soft">
            {finding.where} · <code>{finding.code}</code> · {finding.how_to_fix}
          </p>
        </li>
      ))}
    </ul>
  )
}
