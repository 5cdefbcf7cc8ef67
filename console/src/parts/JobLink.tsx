import { Link } from 'react-router'

import { shortId } from '../ui/format'

/** Leads to a job; the ids of jobs are told to operators alone, who may look at them. */
export function JobLink({ jobId }: { jobId: string }) {
  return (
    <Link className="mono" to={`/jobs/${jobId}`} title={jobId}>
      {shortId(jobId)}
    </Link>
  )
}
