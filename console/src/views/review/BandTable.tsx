import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Empty } from '../../ui/notices'
import { Card } from '../../ui/parts'
import { Difference } from './Comparison'
import type { BandStatistics, RasterTold } from './documents'
import { figure } from './facts'

const FIGURES = ['min', 'max', 'mean', 'std', 'valid_percent'] as const

interface Props {
  here: RasterTold
  there: RasterTold | undefined
}

/** The statistics of each band, those of the version in service below. */
export function BandTable({ here, there }: Props) {
  return (
    <Card title={texts.statistics.title} flush>
      {here.statistics === null ? (
        <Empty>{texts.statistics.none}</Empty>
      ) : (
        <div className="table-frame" tabIndex={0} role="region" aria-label={shared.scrollable(texts.statistics.title)}>
          <table className="table review-bands">
            <thead>
              <tr>
                <th scope="col">{texts.statistics.band}</th>
                {there && <th scope="col">{texts.statistics.version}</th>}
                {FIGURES.map((name) => (
                  <th key={name} scope="col" className="number">
                    {texts.statistics[name]}
                  </th>
                ))}
                {there && <th scope="col">{texts.difference}</th>}
              </tr>
            </thead>
            {Object.entries(here.statistics).map(([band, found]) => (
              <Band key={band} band={band} here={found} there={there && (there.statistics?.[band] ?? null)} />
            ))}
          </table>
        </div>
      )}
    </Card>
  )
}

interface BandProps {
  band: string
  here: BandStatistics
  /** Undefined where nothing is compared; null where the other has no such band. */
  there: BandStatistics | null | undefined
}

function Band({ band, here, there }: BandProps) {
  const name = here.description ? `${band} ${here.description}` : band
  const isCompared = there !== undefined
  return (
    <tbody>
      <tr>
        <th scope="rowgroup" rowSpan={isCompared ? 2 : 1}>
          {name}
        </th>
        {isCompared && <td>{texts.thisVersion}</td>}
        <Figures of={here} />
        {isCompared && (
          <td rowSpan={2}>
            <Difference differs={differs(here, there)} />
          </td>
        )}
      </tr>
      {isCompared && (
        <tr>
          <td>{texts.inService}</td>
          <Figures of={there} than={here} />
        </tr>
      )}
    </tbody>
  )
}

function Figures({ of: band, than }: { of: BandStatistics | null; than?: BandStatistics }) {
  return FIGURES.map((name) => (
    <td key={name} className={than && band && isOther(name, band, than) ? 'number review-other' : 'number'}>
      {band ? figure(band[name]) : shared.none}
    </td>
  ))
}

function differs(here: BandStatistics, there: BandStatistics | null): boolean {
  return there === null || FIGURES.some((name) => isOther(name, here, there))
}

/** Values that are read alike are alike. */
function isOther(name: (typeof FIGURES)[number], one: BandStatistics, other: BandStatistics): boolean {
  return figure(one[name]) !== figure(other[name])
}
