import './review.css'

import { useParams } from 'react-router'

import { Answer } from '../../ui/Answer'
import { Review } from './Review'
import { useUnderReview } from './underReview'

/** One version: everything that is needed to decide on it, and the decision. */
export default function ReviewPage() {
  const { assetId = '', ordinal = '' } = useParams()
  const found = useUnderReview(assetId, Number(ordinal))
  return <Answer query={found}>{(under) => <Review under={under} />}</Answer>
}
