import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { useEvery } from '../../live/live'
import { operations } from '../../texts/operations'
import { Answer } from '../../ui/Answer'
import { Empty } from '../../ui/notices'
import { Pager, usePages } from '../../ui/paging'
import { Card } from '../../ui/parts'
import { useBulk } from './bulk'
import { BulkProgress } from './BulkProgress'
import { DeedDialog, type Asked } from './DeedDialog'
import { LetterFilters, useLetterFilters } from './LetterFilters'
import { LetterTable } from './LetterTable'
import * as queries from './queries'
import { SelectionButtons } from './SelectionButtons'

const texts = operations.letters
const NONE: ReadonlySet<string> = new Set()

/** Messages that nobody tries to deliver any more. */
export function DeadLetters() {
  const filters = useLetterFilters()
  const { kind, queue } = filters
  const pages = usePages(`${kind} ${queue}`)
  const found = useQuery({ ...queries.letters(kind, queue, pages.cursor), refetchInterval: useEvery() })
  const [selected, setSelected] = useState(NONE)
  const [asked, setAsked] = useState<Asked | null>(null)
  const bulk = useBulk()
  const shown = found.data?.items ?? []

  function startMany({ deed, ids }: Asked) {
    bulk.start(deed, ids)
    setSelected(NONE)
  }

  const selection = shown.length > 0 && (
    <SelectionButtons
      letters={shown}
      selected={selected}
      isBusy={bulk.run?.isRunning ?? false}
      onSelect={(ids) => setSelected(new Set(ids))}
      onAsk={setAsked}
    />
  )
  return (
    <>
      <LetterFilters {...filters} />
      {bulk.run && <BulkProgress bulk={bulk} run={bulk.run} />}
      <Card title={texts.label} actions={selection} flush>
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
      {asked && <DeedDialog asked={asked} onMany={() => startMany(asked)} onClose={() => setAsked(null)} />}
    </>
  )
}

function toggled(selected: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(selected)
  if (!next.delete(id)) next.add(id)
  return next
}
