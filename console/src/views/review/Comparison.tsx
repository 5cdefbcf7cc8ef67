/** This version and the one in service, side by side. */

import type { ReactNode } from 'react'

import type { LayerDescribed, ValidationReport } from '../../api/model'
import { Hash } from '../../parts/Hash'
import { review as texts } from '../../texts/review'
import { shared } from '../../texts/shared'
import { Card } from '../../ui/parts'
import type { FeaturesTold, RasterTold } from './documents'
import { compared, descriptionEntries, extentEntries, featureEntries, fileEntries, rasterEntries } from './facts'
import { changedColumns, type Fact, type Told } from './facts'

/** All that is known of one of the two; what is undefined was not told (yet). */
export interface Known {
  ordinal: number
  label: string
  revision: number
  bbox: number[] | null
  contentHash: string | null
  outputHash: string | null
  report: ValidationReport | null
  description: LayerDescribed | undefined
  raster: RasterTold | undefined
  features: FeaturesTold | undefined
}

interface Props {
  here: Known
  there: Known | null
}

const GROUPS: [string, (known: Known) => Told][] = [
  [texts.groups.description, (known) => descriptionEntries(known.description)],
  [texts.groups.extent, (known) => extentEntries(known.bbox)],
  [texts.groups.data, dataEntries],
  [texts.groups.file, (known) => fileEntries(known.report)],
]

export function Comparison({ here, there }: Props) {
  return (
    <Card title={there ? texts.compared : texts.known} flush>
      <div className="table-frame" tabIndex={0} role="region" aria-label={shared.scrollable(texts.known)}>
        <table className="table review-facts">
          <thead>
            <tr>
              <th scope="col">{texts.fact}</th>
              <ColumnHead name={texts.thisVersion} known={here} />
              {there && <ColumnHead name={texts.inService} known={there} />}
              {there && <th scope="col">{texts.difference}</th>}
            </tr>
          </thead>
          {GROUPS.map(([name, entriesOf]) => (
            <Group
              key={name}
              name={name}
              facts={compared(entriesOf(here), there ? entriesOf(there) : undefined)}
              isCompared={there !== null}
            >
              {entriesOf === dataEntries && <Columns here={here} there={there} />}
            </Group>
          ))}
          <Hashes here={here} there={there} />
        </table>
      </div>
    </Card>
  )
}

function dataEntries({ raster, features }: Known): Told {
  if (raster) return rasterEntries(raster.info)
  return features ? featureEntries(features) : null
}

function ColumnHead({ name, known }: { name: string; known: Known }) {
  return (
    <th scope="col">
      {name}
      <span className="review-which">{texts.which(known.label, known.ordinal, known.revision)}</span>
    </th>
  )
}

interface GroupProps {
  name: string
  facts: Fact[]
  isCompared: boolean
  children?: ReactNode
}

function Group({ name, facts, isCompared, children }: GroupProps) {
  if (facts.length === 0) return null
  return (
    <tbody>
      <GroupHead name={name} isCompared={isCompared} />
      {facts.map((fact) => (
        <Row key={fact.name} {...fact} isCompared={isCompared} />
      ))}
      {children}
    </tbody>
  )
}

function GroupHead({ name, isCompared }: { name: string; isCompared: boolean }) {
  return (
    <tr>
      <th scope="rowgroup" colSpan={isCompared ? 4 : 2} className="review-group">
        {name}
      </th>
    </tr>
  )
}

interface RowProps {
  name: string
  here: ReactNode
  there: ReactNode
  differs: boolean | null
  isCompared: boolean
}

function Row({ name, here, there, differs, isCompared }: RowProps) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{here ?? shared.none}</td>
      {isCompared && <td>{there ?? shared.none}</td>}
      {isCompared && (
        <td>
          <Difference differs={differs} />
        </td>
      )}
    </tr>
  )
}

/** Null: that cannot be told. */
export function Difference({ differs }: { differs: boolean | null }) {
  if (differs === null) return <>{shared.none}</>
  return differs ? <span className="badge tone-warn">{texts.differs}</span> : <span className="soft">{texts.same}</span>
}

function Columns({ here, there }: Props) {
  const changes = here.features && there?.features && changedColumns(here.features, there.features)
  if (!changes) return null
  return (
    <tr>
      <th scope="row">{texts.changedColumns}</th>
      <td colSpan={3}>{changes}</td>
    </tr>
  )
}

function Hashes({ here, there }: Props) {
  const rows: [string, string | null, string | null][] = [
    [texts.sourceHash, here.contentHash, there && there.contentHash],
    [texts.outputHash, here.outputHash, there && there.outputHash],
  ]
  return (
    <tbody>
      <GroupHead name={texts.groups.hashes} isCompared={there !== null} />
      {rows.map(([name, one, other]) => (
        <Row
          key={name}
          name={name}
          here={one && <Hash of={texts.hashOf(name, texts.thisVersion)} hash={one} />}
          there={other && <Hash of={texts.hashOf(name, texts.inService)} hash={other} />}
          differs={one !== other}
          isCompared={there !== null}
        />
      ))}
    </tbody>
  )
}
