import type { components } from '../../api/gateway'
import { assets } from '../../texts/assets'

type Report = components['schemas']['ValidationReport']

/** What was found in the file that was sent, in brief. */
export function Validation({ report }: { report: object | null }) {
  if (report === null) return <p className="soft">{assets.details.nothing}</p>
  const { outcome, findings } = report as Report
  return (
    <>
      <p>
        <strong>{assets.details.outcomes[outcome] ?? outcome}</strong>
      </p>
      {findings.length === 0 && <p className="soft">{assets.details.noFindings}</p>}
      <ul className="assets-findings">
        {findings.map((finding) => (
          <li key={`${finding.code} ${finding.where}`}>
            {finding.what} <span className="soft">{finding.how_to_fix}</span>
          </li>
        ))}
      </ul>
    </>
  )
}
