import { letterKindValues } from '../../api/orchestrator'
import { useQueues } from '../../data/queues'
import { operations } from '../../texts/operations'
import { useAddress } from '../../ui/address'
import { Choice } from '../../ui/Choice'
import type { Kind } from './queries'

const texts = operations.letters

interface Filters {
  kind: Kind | undefined
  queue: string | undefined
  change: (changes: Record<string, string | null>) => void
}

/** Which dead letters are looked at, as the address says it. */
export function useLetterFilters(): Filters {
  const [parameters, change] = useAddress()
  const kind = letterKindValues.find((each) => each === parameters.get('kind'))
  return { kind, queue: parameters.get('queue') ?? undefined, change }
}

export function LetterFilters({ kind, queue, change }: Filters) {
  return (
    <div className="filters">
      <Choice
        label={texts.kind}
        any={operations.any}
        value={kind ?? ''}
        choices={letterKindValues.map((each) => [each, texts.kinds[each] ?? each])}
        onChange={(value) => change({ kind: value })}
      />
      <QueueChoice value={queue ?? ''} onChange={(value) => change({ queue: value })} />
    </div>
  )
}

/** The queues that hold dead letters, and the one that is chosen. */
function QueueChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { data } = useQueues()
  const names = new Set((data?.items ?? []).filter(({ dead }) => dead > 0).map(({ queue }) => queue))
  if (value) names.add(value)
  return (
    <Choice
      label={texts.queue}
      any={operations.any}
      value={value}
      choices={[...names].sort().map((name) => [name, name])}
      onChange={onChange}
    />
  )
}
