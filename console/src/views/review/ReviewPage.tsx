import './review.css'

import { useParams } from 'react-router'

import { ProblemNotice, Loading } from '../../ui/notices'
import { Review } from './Review'
import { useUnderReview } from './underReview'

/** One version: everything that is needed to decide on it, and the decision. */
export default function ReviewPage() {
  const { assetId = '', ordinal = '' } = useParams()
  const { data, error, refetch } = useUnderReview(assetId, Number(ordinal))
  if (data) return <Review under={data} />
  return error ? <ProblemNotice error={error} onRetry={() => void refetch()} /> : <Loading />
}
