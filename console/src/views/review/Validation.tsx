import type { ValidationReport } from '../../api/model'
import { Findings, OutcomeBadge } from '../../parts/Findings'
import { parts } from '../../texts/parts'
import { shared } from '../../texts/shared'
import { Card } from '../../ui/parts'

const { title } = parts.validation

/** What was found in the file that was sent. */
export function Validation({ report }: { report: ValidationReport | null }) {
  return (
    <Card title={title} actions={report && <OutcomeBadge outcome={report.outcome} />}>
      <div className="review-scroll" tabIndex={0} role="region" aria-label={shared.scrollable(title)}>
        <Findings report={report} />
      </div>
    </Card>
  )
}
