import { useState } from 'react'

import type { Statistics } from '../../api/model'
import { overview } from '../../texts/overview'
import { Answer } from '../../ui/Answer'
import { count } from '../../ui/format'
import { Card } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { HourChart } from './HourChart'
import { during } from './hourTexts'
import { ENDS, everyHour, type End, type Hour } from './hours'
import { useStatistics } from './questions'

const texts = overview.throughput

const COLUMNS: Column<Hour>[] = [
  { name: texts.hour, cell: during },
  ...ENDS.map((end) => ({ name: texts[end], cell: (hour: Hour) => count(hour[end]), isNumber: true })),
]

/** How many jobs ended, hour by hour. */
export function Throughput() {
  return (
    <Card title={texts.title} className="overview-throughput">
      <Answer query={useStatistics()}>{(statistics) => <Hours statistics={statistics} />}</Answer>
    </Card>
  )
}

function Hours({ statistics }: { statistics: Statistics }) {
  const [chosen, setChosen] = useState<number | null>(null)
  const hours = everyHour(statistics.hours, Date.now())
  const hour = chosen === null ? null : (hours[chosen] ?? null)
  const all = {
    completed: statistics.completed_24h,
    failed: statistics.failed_24h,
    cancelled: statistics.cancelled_24h,
  }
  return (
    <>
      <Legend
        numbers={hour ?? all}
        what={hour ? during(hour) : texts.perHour(statistics.jobs_per_hour.toFixed(1))}
      />
      <HourChart hours={hours} chosen={chosen} onChoose={setChosen} />
      <details className="overview-as-table">
        <summary>{texts.asTable}</summary>
        <Table label={texts.title} columns={COLUMNS} rows={hours.toReversed()} rowKey={(each) => String(each.start)} />
      </details>
    </>
  )
}

/** What the colours mean, with the numbers of the day, or of the hour that is pointed at. */
function Legend({ numbers, what }: { numbers: Record<End, number>; what: string }) {
  return (
    <div className="overview-legend">
      {ENDS.map((end) => (
        <span key={end} className={`overview-key ${end}`}>
          <strong>{count(numbers[end])}</strong> {texts[end]}
        </span>
      ))}
      <span className="soft">{what}</span>
    </div>
  )
}
