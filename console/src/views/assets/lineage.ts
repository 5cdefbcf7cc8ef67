/** Where revisions came from: the requests that asked for each, the jobs that worked on it, and what it left behind. */

import type { AssetRevision, AssetVersion, JobListItem, PlatformRequest } from '../../api/model'
import { outputsOf, type Output } from './outputs'

/** One revision of a version: a chain from request to services. */
export interface Chain {
  revision: number
  isCurrent: boolean
  isInService: boolean
  requests: PlatformRequest[]
  /** What processed it. */
  jobs: JobListItem[]
  /** What made or removed public copies of it. */
  publishing: JobListItem[]
  outputs: Output[]
}

export interface Sources {
  requests: PlatformRequest[]
  jobs: JobListItem[]
  revisions: AssetRevision[]
}

/** The chains of a version, the newest revision first. */
export function chainsOf(version: AssetVersion, sources: Sources): Chain[] {
  const ofVersion = <T extends { version_ordinal?: number | null }>(items: T[]) =>
    items.filter((item) => item.version_ordinal === version.version_ordinal)
  const own = {
    requests: ofVersion(sources.requests),
    jobs: ofVersion(sources.jobs),
    revisions: ofVersion(sources.revisions),
  }
  const numbers = new Set([version.revision, ...own.revisions.map(({ revision }) => revision)])
  return [...numbers].sort((one, other) => other - one).map((revision) => chainOf(revision, version, own))
}

function chainOf(revision: number, version: AssetVersion, own: Sources): Chain {
  const jobs = own.jobs.filter((job) => revisionOf(job, version, own) === revision)
  const isCurrent = revision === version.revision
  const superseded = own.revisions.find((each) => each.revision === revision)
  return {
    revision,
    isCurrent,
    isInService: version.approved_revision === revision && !version.deleted_at,
    requests: own.requests.filter((request) => request.revision === revision),
    jobs: jobs.filter(({ purpose }) => purpose === 'process'),
    publishing: jobs.filter(({ purpose }) => purpose !== 'process'),
    outputs: outputsOf(isCurrent ? version : (superseded?.outputs ?? {})),
  }
}

/** Most workflows are told the revision; of the others, what is kept of it names the job. */
function revisionOf(job: JobListItem, version: AssetVersion, { requests, revisions }: Sources): number {
  const told = job.input_params?.revision
  if (typeof told === 'number') return told
  const kept = [...revisions, ...requests].find((each) => each.job_id === job.job_id)
  return kept?.revision ?? version.revision
}

/** Where the data of a request came from: `bronze/demo/island.tif`. */
export function sourceOf(request: PlatformRequest): string | null {
  const { submission } = request.request_body as { submission?: { container_name?: string; file_name?: string } }
  if (!submission?.file_name) return null
  return [submission.container_name, submission.file_name].filter(Boolean).join('/')
}
