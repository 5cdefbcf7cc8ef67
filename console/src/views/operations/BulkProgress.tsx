import { operations } from '../../texts/operations'
import { Button } from '../../ui/Button'
import { Card, Progress } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import type { Bulk, LetterDeed, Outcome, Run } from './bulk'

const texts = operations.letters

/** How far one deed for many letters is, and what became of each of them. */
export function BulkProgress({ bulk, run }: { bulk: Bulk; run: Run }) {
  const refused = run.outcomes.filter(({ refusal }) => refusal !== null).length
  const done = run.outcomes.length - refused
  const title = texts.manyOf(texts.deeds[run.deed], run.total)
  const button = run.isRunning ? (
    <Button onClick={bulk.stop}>{texts.stop}</Button>
  ) : (
    <Button onClick={bulk.dismiss}>{texts.dismiss}</Button>
  )
  return (
    <Card title={title} actions={button} flush>
      <div className="operations-run">
        <Progress label={title} total={run.total} done={done} failed={refused} />
        <p role="status">{told(run, done, refused)}</p>
      </div>
      {!run.isRunning && run.outcomes.length > 0 && (
        <Table
          label={texts.outcomes}
          columns={columns(run.deed)}
          rows={run.outcomes}
          rowKey={(outcome) => outcome.id}
        />
      )}
    </Card>
  )
}

function told(run: Run, done: number, refused: number): string {
  const deed = texts.deeds[run.deed]
  if (run.isRunning) return texts.running(deed, run.outcomes.length, run.total)
  const left = run.total - run.outcomes.length
  return [texts.ended(deed, done, refused), left > 0 ? texts.stopped(left) : null].filter(Boolean).join(' ')
}

function columns(deed: LetterDeed): Column<Outcome>[] {
  return [
    { name: texts.letter, cell: (outcome) => <code>{outcome.id}</code> },
    { name: texts.outcome, cell: (outcome) => <Became outcome={outcome} deed={deed} /> },
    { name: texts.reason, cell: (outcome) => outcome.refusal },
  ]
}

function Became({ outcome, deed }: { outcome: Outcome; deed: LetterDeed }) {
  const isDone = outcome.refusal === null
  return <span className={`badge tone-${isDone ? 'good' : 'bad'}`}>{isDone ? texts.done[deed] : texts.refused}</span>
}
