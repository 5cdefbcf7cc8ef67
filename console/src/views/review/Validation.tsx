import type { ValidationReport } from '../../api/model'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Empty } from '../../ui/notices'
import { Card } from '../../ui/parts'

type Outcome = ValidationReport['outcome']

const TONES: Record<Outcome, string> = { ok: 'good', fix: 'warn', reject: 'bad' }

export function OutcomeBadge({ outcome }: { outcome: Outcome }) {
  return <span className={`badge tone-${TONES[outcome]}`}>{texts.outcomes[outcome]}</span>
}

/** What was found in the file that was sent. */
export function Validation({ report }: { report: ValidationReport | null }) {
  return (
    <Card title={texts.validation} actions={report && <OutcomeBadge outcome={report.outcome} />}>
      {report === null && <Empty>{texts.noValidation}</Empty>}
      {report && <Findings findings={report.findings ?? []} />}
    </Card>
  )
}

function Findings({ findings }: { findings: NonNullable<ValidationReport['findings']> }) {
  if (findings.length === 0) return <p className="soft">{texts.noFindings}</p>
  return (
    <div className="review-scroll" tabIndex={0} role="region" aria-label={shared.scrollable(texts.validation)}>
      <ul className="review-findings">
        {findings.map((finding, place) => (
          <li key={place}>
            <p>
              <span className={`badge tone-${TONES[finding.severity]}`}>{texts.severities[finding.severity]}</span>{' '}
              {finding.what}
            </p>
            <p className="soft">
              {finding.where} · <code>{finding.code}</code> · {finding.how_to_fix}
            </p>
          </li>
        ))}
      </ul>
    </div>
  )
}
