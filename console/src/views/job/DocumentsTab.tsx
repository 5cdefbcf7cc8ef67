import type { JobDetail } from '../../api/model'
import { job as texts } from '../../texts/job'
import { Empty, Notice } from '../../ui/notices'
import { Card, Json } from '../../ui/parts'

/** What the job was given and what it gave. */
export function DocumentsTab({ job }: { job: JobDetail }) {
  const inputs = job.input_params ?? {}
  const hasInputs = Object.keys(inputs).length > 0
  return (
    <div className="job-documents">
      <Card title={texts.inputs}>
        {hasInputs ? <Json value={inputs} label={texts.inputs} /> : <Empty>{texts.noInputs}</Empty>}
      </Card>
      <Card title={texts.result}>
        <Result job={job} />
      </Card>
    </div>
  )
}

function Result({ job }: { job: JobDetail }) {
  if (job.omitted?.includes('result')) return <Notice kind="warning">{texts.resultLost}</Notice>
  if (job.result === null || job.result === undefined) {
    return <Empty>{job.ended_at ? texts.noResultAtAll : texts.noResult}</Empty>
  }
  return <Json value={job.result} label={texts.result} />
}
