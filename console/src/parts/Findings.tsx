import type { ValidationReport } from '../api/model'
import { parts } from '../texts/parts'
import './parts.css'

const texts = parts.validation

type Outcome = ValidationReport['outcome']

const TONES: Record<Outcome, string> = { ok: 'good', fix: 'warn', reject: 'bad' }

export function OutcomeBadge({ outcome }: { outcome: Outcome }) {
  return <span className={`badge tone-${TONES[outcome]}`}>{texts.outcomes[outcome]}</span>
}

/** What was found in the file that was sent, and how to mend it. */
export function Findings({ report }: { report: ValidationReport | null }) {
  if (report === null) return <p className="soft">{texts.none}</p>
  const { findings = [] } = report
  if (findings.length === 0) return <p className="soft">{texts.noFindings}</p>
  return (
    <ul className="findings">
      {findings.map((finding, place) => (
        <li key={place}>
          <p>
            <OutcomeBadge outcome={finding.severity} /> {finding.what}
          </p>
          <p className="soft">
            {finding.where} · <code>{finding.code}</code> · {finding.how_to_fix}
          </p>
        </li>
      ))}
    </ul>
  )
}
