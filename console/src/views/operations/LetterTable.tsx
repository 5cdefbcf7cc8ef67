import type { ReactNode } from 'react'
import { Link } from 'react-router'

import type { DeadLetter } from '../../api/model'
import { operations } from '../../texts/operations'
import { useAddress } from '../../ui/address'
import { Button } from '../../ui/Button'
import { count, dateTime, shortId } from '../../ui/format'
import { Json, KeyValues, Time } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import type { LetterDeed } from './bulk'

const texts = operations.letters

interface Props {
  letters: DeadLetter[]
  selected: ReadonlySet<string>
  onSelect: (id: string) => void
  onAsk: (deed: LetterDeed, id: string) => void
}

/** Dead letters, newest first. The one that is inspected stands in the address. */
export function LetterTable({ letters, selected, onSelect, onAsk }: Props) {
  const [parameters, change] = useAddress()
  const opened = parameters.get('letter')
  const columns: Column<DeadLetter>[] = [
    { name: texts.select, cell: ({ id }) => <Tick id={id} isOn={selected.has(id)} onChange={() => onSelect(id)} /> },
    { name: texts.letter, cell: (letter) => <Letter letter={letter} /> },
    { name: texts.reason, cell: ({ reason }) => <span className="operations-text">{reason}</span> },
    { name: texts.deliveries, cell: (letter) => count(letter.delivery_count), isNumber: true },
    { name: texts.job, cell: (letter) => <JobAndNode letter={letter} /> },
    { name: texts.since, cell: (letter) => <Time at={letter.created_at} /> },
    {
      name: texts.actions,
      cell: ({ id }) => (
        <Actions
          id={id}
          isOpen={opened === id}
          onToggle={() => change({ letter: opened === id ? null : id })}
          onAsk={(deed) => onAsk(deed, id)}
        />
      ),
    },
  ]
  return (
    <Table
      label={texts.label}
      columns={columns}
      rows={letters}
      rowKey={({ id }) => id}
      details={(letter) => (letter.id === opened ? <Details letter={letter} /> : null)}
    />
  )
}

function Tick({ id, isOn, onChange }: { id: string; isOn: boolean; onChange: () => void }) {
  return <input type="checkbox" aria-label={texts.selectOne(id)} checked={isOn} onChange={onChange} />
}

function Letter({ letter }: { letter: DeadLetter }) {
  return (
    <>
      {texts.kinds[letter.kind] ?? letter.kind}
      <span className="operations-below operations-line soft">{letter.queue}</span>
    </>
  )
}

function JobAndNode({ letter: { job_id: job, node_id: node } }: { letter: DeadLetter }) {
  if (!job) return null
  const search = node ? `?${new URLSearchParams({ node })}` : ''
  return (
    <Link to={`/jobs/${job}${search}`} title={job}>
      <span className="mono">{shortId(job)}</span>
      {node && <span className="operations-below">{node}</span>}
    </Link>
  )
}

interface ActionsProps {
  id: string
  isOpen: boolean
  onToggle: () => void
  onAsk: (deed: LetterDeed) => void
}

function Actions({ id, isOpen, onToggle, onAsk }: ActionsProps) {
  const show = isOpen ? texts.hide : texts.show
  const { requeue, discard } = texts.deeds
  return (
    <div className="operations-actions">
      <Button kind="quiet" aria-expanded={isOpen} aria-label={texts.ofLetter(show, id)} onClick={onToggle}>
        {show}
      </Button>
      <Button kind="quiet" aria-label={texts.ofLetter(requeue, id)} onClick={() => onAsk('requeue')}>
        {requeue}
      </Button>
      <Button kind="quiet" aria-label={texts.ofLetter(discard, id)} onClick={() => onAsk('discard')}>
        {discard}
      </Button>
    </div>
  )
}

function facts(letter: DeadLetter): [string, ReactNode][] {
  return [
    [texts.id, <code key="id">{letter.id}</code>],
    [texts.queue, letter.queue],
    [texts.reason, letter.reason],
    [texts.deliveries, count(letter.delivery_count)],
    [texts.handler, letter.handler],
    [texts.job, letter.job_id && <JobAndNode key="job" letter={letter} />],
    [texts.created, dateTime(letter.created_at)],
  ]
}

/** All that is known of a letter. */
function Details({ letter }: { letter: DeadLetter }) {
  const body = texts.bodyOf[letter.kind] ?? ''
  return (
    <div className="operations-details">
      <KeyValues items={facts(letter).filter(([, value]) => value)} />
      <div>
        <h3>{body}</h3>
        <Json value={letter.body} label={body} />
      </div>
    </div>
  )
}
