import { Link } from 'react-router'

import { jobStatusValues } from '../../api/gateway'
import type { JobStatus, Statistics } from '../../api/model'
import { overview as texts } from '../../texts/overview'
import { shared } from '../../texts/shared'
import { Answer } from '../../ui/Answer'
import { count } from '../../ui/format'
import { toneOf } from '../../ui/parts'
import { useStatistics } from './questions'

/** How many jobs there are of each state; each leads to the list of them. */
export function JobsByState() {
  return (
    <section aria-label={texts.byState}>
      <Answer query={useStatistics()}>
        {(statistics) => (
          <ul className="overview-tiles">
            {jobStatusValues.map((status) => (
              <Tile key={status} status={status} number={numberOf(statistics, status)} />
            ))}
          </ul>
        )}
      </Answer>
    </section>
  )
}

function Tile({ status, number }: { status: JobStatus; number: string }) {
  const name = shared.states[status] ?? status
  return (
    <li className={`tone-${toneOf(status)}`}>
      <Link to={`/jobs?status=${status}`}>
        <span className="overview-tile-state">{name}</span>{' '}
        <span className="overview-tile-number">
          {number} <span className="visually-hidden">{texts.jobs(number)}</span>
        </span>
      </Link>
    </li>
  )
}

/** Jobs are counted to a bound; at it there may be more. */
function numberOf({ jobs, counted_up_to }: Statistics, status: JobStatus): string {
  const number = jobs[status] ?? 0
  return number < counted_up_to ? count(number) : texts.attention.more(number)
}
