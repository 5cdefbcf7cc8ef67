import { useQuery } from '@tanstack/react-query'
import { Link } from 'react-router'

import { platforms } from '../../data/platforms'
import { useQueues } from '../../data/queues'
import { overview } from '../../texts/overview'
import { Loading, ProblemNotice } from '../../ui/notices'
import { Card, Time } from '../../ui/parts'
import { concernsOf, type Concern } from './concerns'
import {
  useFailedVersions,
  useHealth,
  useNewestFailedJob,
  useReviews,
  useStatistics,
  useStuckVersions,
} from './questions'

const texts = overview.attention

/** What someone should look at, each with the way to where it is dealt with. */
export function Attention() {
  const { concerns, isPending, error, retry } = useConcerns()
  return (
    <Card title={texts.title} flush className="overview-attention">
      <p className="visually-hidden" role="status">
        {!isPending && texts.sum(concerns.length)}
      </p>
      {error && <ProblemNotice error={error} onRetry={retry} />}
      {concerns.length > 0 && (
        <ul>
          {concerns.map((concern) => (
            <Row key={concern.id} concern={concern} />
          ))}
        </ul>
      )}
      {concerns.length === 0 && (isPending ? <Loading /> : !error && <AllWell />)}
    </Card>
  )
}

function useConcerns() {
  const questions = {
    statistics: useStatistics(),
    health: useHealth(),
    queues: useQueues(),
    failedVersions: useFailedVersions(),
    stuckVersions: useStuckVersions(),
    newestFailedJob: useNewestFailedJob(),
    reviews: useReviews(),
  }
  const partners = useQuery(platforms()).data // by which datasets are named; without them they have names too
  const all = Object.values(questions)
  const failed = all.filter((query) => query.error)
  return {
    concerns: concernsOf({
      partners: partners?.items,
      statistics: questions.statistics.data,
      health: questions.health.data,
      queues: questions.queues.data,
      failedVersions: questions.failedVersions.data,
      stuckVersions: questions.stuckVersions.data,
      newestFailedJob: questions.newestFailedJob.data,
      reviews: questions.reviews.data,
    }),
    isPending: all.some((query) => query.isPending && !query.error),
    error: failed[0]?.error ?? null,
    retry: () => failed.forEach((query) => void query.refetch()),
  }
}

function Row({ concern: { tone, number, text, to, example } }: { concern: Concern }) {
  return (
    <li className={`tone-${tone}`}>
      <span className="overview-number">{number}</span>
      <span className="overview-concern">
        <Link to={to}>{text}</Link>
        {example && (
          <span className="overview-example soft truncate" title={example.error ?? undefined}>
            <Link to={example.to}>{example.text}</Link> <Time at={example.at} />
            {example.error && ` · ${example.error}`}
          </span>
        )}
      </span>
    </li>
  )
}

function AllWell() {
  return (
    <p className="overview-well tone-good">
      <strong>{texts.nothing}</strong>
      <span className="soft">{texts.nothingHint}</span>
    </p>
  )
}
