import type { WorkflowPage } from '../../api/model'
import { workflows } from '../../texts/workflows'
import { Card } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'

const texts = workflows.problems

type FileProblem = WorkflowPage['problems'][number]

const COLUMNS: Column<FileProblem>[] = [
  { name: texts.columns.severity, cell: ({ severity }) => <Severity severity={severity} /> },
  { name: texts.columns.place, cell: (problem) => <Place problem={problem} /> },
  { name: texts.columns.message, cell: ({ message }) => message },
  { name: texts.columns.hint, cell: ({ hint }) => hint },
]

/** What is wrong with the files, the errors first: those keep a workflow from being there. */
export function FileProblems({ problems }: { problems: FileProblem[] }) {
  const errors = problems.filter(({ severity }) => severity === 'error')
  const warnings = problems.filter(({ severity }) => severity === 'warning')
  return (
    <Card
      title={texts.title}
      flush
      className={`workflows-problems tone-${errors.length > 0 ? 'bad' : 'warn'}`}
      actions={<span>{texts.told(errors.length, warnings.length)}</span>}
    >
      <Table
        label={texts.title}
        columns={COLUMNS}
        rows={[...errors, ...warnings]}
        rowKey={({ file, line, node, code, message }) => [file, line, node, code, message].join('\n')}
      />
    </Card>
  )
}

function Severity({ severity }: { severity: FileProblem['severity'] }) {
  return <span className={`badge tone-${severity === 'error' ? 'bad' : 'warn'}`}>{texts.severity[severity]}</span>
}

function Place({ problem: { file, line, node } }: { problem: FileProblem }) {
  return (
    <>
      <span className="mono">{texts.place(file, line)}</span>
      {node && <span className="soft workflows-node">{texts.node(node)}</span>}
    </>
  )
}
