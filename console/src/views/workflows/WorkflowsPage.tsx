import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from 'react-router'

import { content, orchestrator } from '../../api/client'
import type { WorkflowSummary } from '../../api/model'
import { useWorkflows } from '../../data/workflows'
import { workflows as texts } from '../../texts/workflows'
import { Answer } from '../../ui/Answer'
import { Button } from '../../ui/Button'
import { count } from '../../ui/format'
import { Empty, Notice, ProblemNotice } from '../../ui/notices'
import { Card } from '../../ui/parts'
import { Table, type Column } from '../../ui/Table'
import { FileProblems } from './FileProblems'
import './workflows.css'

const COLUMNS: Column<WorkflowSummary>[] = [
  { name: texts.columns.name, cell: (workflow) => <Name workflow={workflow} /> },
  { name: texts.columns.description, cell: ({ description }) => description },
  { name: texts.columns.id, cell: ({ workflow_id }) => <span className="mono">{workflow_id}</span> },
  { name: texts.columns.version, cell: ({ version }) => version, isNumber: true },
  { name: texts.columns.inputs, cell: ({ inputs }) => count(Object.keys(inputs).length), isNumber: true },
]

export default function WorkflowsPage() {
  const query = useWorkflows()
  const reload = useReload()
  return (
    <div className="page">
      <div className="page-head">
        <h1>{texts.title}</h1>
        <div className="buttons">
          <Button busy={reload.isPending} onClick={() => reload.mutate()}>
            {texts.reload}
          </Button>
        </div>
      </div>
      {reload.error && <ProblemNotice error={reload.error} />}
      {reload.data && (
        <Notice kind="good">{texts.reloaded(reload.data.items.length, reload.data.problems.length)}</Notice>
      )}
      <Answer query={query}>
        {({ items, problems }) => (
          <>
            {problems.length > 0 && <FileProblems problems={problems} />}
            <Card title={texts.list} flush className="workflows-list">
              {items.length > 0 ? (
                <Table label={texts.list} columns={COLUMNS} rows={items} rowKey={({ workflow_id }) => workflow_id} />
              ) : (
                <Empty>{texts.none}</Empty>
              )}
            </Card>
          </>
        )}
      </Answer>
    </div>
  )
}

function Name({ workflow }: { workflow: WorkflowSummary }) {
  return <Link to={`/workflows/${encodeURIComponent(workflow.workflow_id)}`}>{workflow.name}</Link>
}

/** The gateway reads the files whenever it is asked; the orchestrator, which runs jobs, only when it is told to. */
function useReload() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: () => content(orchestrator.POST('/api/v1/workflows/reload')),
    onSettled: () => client.invalidateQueries({ queryKey: ['workflows'] }),
  })
}
