import { Link } from 'react-router'

import { assets } from '../../texts/assets'
import { Button } from '../../ui/Button'
import { Notice } from '../../ui/notices'
import type { Outcome } from './changes'

const texts = assets.done

/** What the last change came to, and what it warns of. */
export function OutcomeNotice({ outcome, onDismiss }: { outcome: Outcome; onDismiss: () => void }) {
  const action = assets.actions[outcome.action]
  return (
    <Notice kind={outcome.warning ? 'warning' : outcome.isChanged ? 'good' : 'info'}>
      <span>{outcome.isChanged ? texts.changed(action) : texts.unchanged(action)}</span>
      {outcome.warning && <strong>{outcome.warning}</strong>}
      {outcome.jobId && <Link to={`/jobs/${outcome.jobId}`}>{texts.job}</Link>}
      <Button kind="quiet" onClick={onDismiss}>
        {texts.dismiss}
      </Button>
    </Notice>
  )
}
