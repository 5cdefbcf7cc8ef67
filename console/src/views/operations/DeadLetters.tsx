import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'

import type { DeadLetter } from '../../api/model'
import { letterKindValues } from '../../api/orchestrator'
import { useEvery } from '../../live/live'
import { operations } from '../../texts/operations'
import { useAddress } from '../../ui/address'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { Choice } from '../../ui/Choice'
import { Dialog } from '../../ui/Dialog'
import { Empty } from '../../ui/notices'
import { Pager, usePages } from '../../ui/paging'
import { Card } from '../../ui/parts'
import { dealWith, useBulk, type LetterDeed } from './bulk'
import { BulkProgress } from './BulkProgress'
import { LetterTable } from './LetterTable'
import * as queries from './queries'

const texts = operations.letters

/** What a dialog asks about: one letter, or those that are selected. */
interface Asked {
  deed: LetterDeed
  ids: string[]
}

/** Messages that nobody tries to deliver any more. */
export function DeadLetters() {
  const [parameters, change] = useAddress()
  const kind = letterKindValues.find((each) => each === parameters.get('kind'))
  const queue = parameters.get('queue') ?? undefined
  const pages = usePages(`${kind} ${queue}`)
  const found = useQuery({ ...queries.letters(kind, queue, pages.cursor), refetchInterval: useEvery() })
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [asked, setAsked] = useState<Asked | null>(null)
  const bulk = useBulk()
  const shown = found.data?.items ?? []
  const chosen = shown.filter(({ id }) => selected.has(id)).map(({ id }) => id)
  return (
    <>
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
      {bulk.run && <BulkProgress bulk={bulk} run={bulk.run} />}
      <Card
        title={texts.label}
        actions={
          shown.length > 0 && (
            <SelectionButtons
              letters={shown}
              chosen={chosen}
              isBusy={bulk.run?.isRunning ?? false}
              onSelect={(ids) => setSelected(new Set(ids))}
              onAsk={(deed) => setAsked({ deed, ids: chosen })}
            />
          )
        }
        flush
      >
        <Answer query={found}>
          {({ items, next }) => (
            <>
              {items.length === 0 && <Empty>{kind || queue ? texts.noneOf : texts.none}</Empty>}
              {items.length > 0 && (
                <LetterTable
                  letters={items}
                  selected={selected}
                  onSelect={(id) => setSelected(toggled(selected, id))}
                  onAsk={(deed, id) => setAsked({ deed, ids: [id] })}
                />
              )}
              <Pager pages={pages} next={next} />
            </>
          )}
        </Answer>
      </Card>
      {asked && (
        <DeedDialog
          asked={asked}
          onMany={() => {
            bulk.start(asked.deed, asked.ids)
            setSelected(new Set())
          }}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  )
}

function toggled(selected: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(selected)
  if (!next.delete(id)) next.add(id)
  return next
}

/** The queues that hold dead letters, and the one that is chosen. */
function QueueChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { data } = useQuery({ ...queries.queues(), refetchInterval: useEvery() })
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

interface SelectionProps {
  letters: DeadLetter[]
  chosen: string[]
  isBusy: boolean
  onSelect: (ids: string[]) => void
  onAsk: (deed: LetterDeed) => void
}

function SelectionButtons({ letters, chosen, isBusy, onSelect, onAsk }: SelectionProps) {
  const isNone = chosen.length === 0
  return (
    <div className="buttons operations-selection">
      <span className="soft" role="status">
        {texts.selected(chosen.length)}
      </span>
      <Button kind="quiet" onClick={() => onSelect(isNone ? letters.map(({ id }) => id) : [])}>
        {isNone ? texts.selectAll : texts.selectNone}
      </Button>
      <Button disabled={isNone || isBusy} onClick={() => onAsk('requeue')}>
        {texts.allOf(texts.deeds.requeue)}
      </Button>
      <Button kind="danger" disabled={isNone || isBusy} onClick={() => onAsk('discard')}>
        {texts.allOf(texts.deeds.discard)}
      </Button>
    </div>
  )
}

interface DeedProps {
  asked: Asked
  onMany: () => void
  onClose: () => void
}

/** Asks before letters are dealt with: one at once, many in the sight of the page. */
function DeedDialog({ asked: { deed, ids }, onMany, onClose }: DeedProps) {
  const client = useQueryClient()
  const only = ids.length === 1 ? ids[0] : undefined
  const name = texts.deeds[deed]

  async function confirm() {
    if (only === undefined) return onMany()
    await dealWith(deed, only)
    void client.invalidateQueries({ queryKey: ['queues'] })
  }

  return (
    <Dialog
      title={texts.manyOf(name, ids.length)}
      action={name}
      kind={deed === 'discard' ? 'danger' : 'primary'}
      onConfirm={confirm}
      onClose={onClose}
    >
      {only && <code className="operations-id">{only}</code>}
      <p>{only === undefined ? texts.aboutMany[deed](ids.length) : texts.about[deed]}</p>
    </Dialog>
  )
}
