import { Fragment, type ReactNode } from 'react'

import { ScrollFrame } from './ScrollFrame'

export interface Column<Row> {
  name: string
  cell: (row: Row) => ReactNode
  isNumber?: boolean
}

interface Props<Row> {
  /** What the table is of, for those who cannot see it. */
  label: string
  columns: Column<Row>[]
  rows: Row[]
  rowKey: (row: Row) => string
  /** What stands below a row, across all columns; nothing where it gives null. */
  details?: (row: Row) => ReactNode
}

export function Table<Row>({ label, columns, rows, rowKey, details }: Props<Row>) {
  return (
    <ScrollFrame label={label}>
      <table className="table" aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={column.isNumber ? 'number' : undefined}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Fragment key={rowKey(row)}>
              <tr>
                {columns.map((column) => (
                  <td key={column.name} className={column.isNumber ? 'number' : undefined}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
              {below(details?.(row), columns.length)}
            </Fragment>
          ))}
        </tbody>
      </table>
    </ScrollFrame>
  )
}

function below(details: ReactNode, columns: number): ReactNode {
  if (details === null || details === undefined) return null
  return (
    <tr className="row-details">
      <td colSpan={columns}>
        <div>{details}</div>
      </td>
    </tr>
  )
}
