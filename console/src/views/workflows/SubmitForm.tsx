import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState, type FormEvent, type RefObject } from 'react'
import { useNavigate } from 'react-router'

import { gateway } from '../../api/client'
import type { WorkflowSummary } from '../../api/model'
import { useSession } from '../../session/session'
import { workflows } from '../../texts/workflows'
import { Button } from '../../ui/Button'
import { Notice, ProblemNotice } from '../../ui/notices'
import { Card } from '../../ui/parts'
import { InputField } from './InputField'
import { textsOf } from './inputs'
import { JobOptions, Resume } from './JobOptions'
import { BLANK, inputField, refusedFields, SHORT_MAX, submissionOf, type Errors, type Written } from './submission'

const texts = workflows.form

interface Props {
  workflow: WorkflowSummary
  /** Whether identical inputs are one job. */
  isOneJob: boolean
}

/** The inputs of a workflow as a form; what it submits is shown next. */
export function SubmitForm({ workflow, isOneJob }: Props) {
  const { workflow_id, inputs } = workflow
  const [written, setWritten] = useState(BLANK)
  const { submission, errors } = submissionOf(workflow_id, inputs, written)
  const held = textsOf(inputs, written.inputs)
  const shown = useShownErrors(errors)
  const { submit, error, isBusy } = useSubmission()
  const refused = refusedFields(error)
  const form = useRef<HTMLFormElement>(null)
  useFocusOnFault(form, shown.attempts, error)

  function send(event: FormEvent) {
    event.preventDefault()
    shown.showAll()
    if (Object.keys(errors).length === 0) submit({ submission, resume: written.resume })
  }

  const change = (part: Partial<Written>) => setWritten((before) => ({ ...before, ...part }))
  const field = (name: string) => ({ error: shown.of(name) ?? refused[name], onLeave: () => shown.show(name) })
  return (
    <Card title={texts.title} className="workflow-form-card">
      <form ref={form} className="workflow-form" noValidate onSubmit={send}>
        {Object.keys(inputs).length === 0 && <p className="soft">{texts.noInputs}</p>}
        <div className="workflow-inputs">
          {Object.entries(inputs).map(([name, spec]) => (
            <InputField
              key={name}
              name={name}
              spec={spec}
              text={held[name] ?? ''}
              {...field(inputField(name))}
              onChange={(text) => change({ inputs: { ...written.inputs, [name]: text } })}
            />
          ))}
        </div>
        <JobOptions written={written} onChange={change} field={field} />
        {isOneJob && <Notice kind="info">{texts.sameInputs}</Notice>}
        {(isOneJob || written.idempotencyKey !== '') && <Resume written={written} onChange={change} />}
        <Refusal error={error} />
        <div className="workflow-submit">
          <span className="soft" role="status">
            {shown.attempts > 0 && Object.keys(errors).length > 0 && texts.mend(Object.keys(errors).length)}
          </span>
          <Button kind="primary" type="submit" busy={isBusy}>
            {texts.submit}
          </Button>
        </div>
      </form>
    </Card>
  )
}

/** Why it was refused; the form may be long, and be sent from its top. */
function Refusal({ error }: { error: unknown }) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    place.current?.scrollIntoView({ block: 'nearest' }) // gives a promise in some browsers
  }, [error])
  if (error === null) return null
  return (
    <div ref={place}>
      <ProblemNotice error={error} />
    </div>
  )
}

/** Submits, and goes to the job: a new one, or the one that was there already. */
function useSubmission() {
  const navigate = useNavigate()
  const { caller } = useSession()
  const submitted_by = caller?.name.slice(0, SHORT_MAX)
  const { mutate, error, isPending } = useMutation({
    mutationFn: async ({ submission, resume }: { submission: Submission; resume: boolean }) => {
      const query = resume ? { resubmit: true } : {}
      const body = { ...submission, submitted_by }
      const { data, response } = await gateway.POST('/api/gateway/submit', { params: { query }, body })
      return { job: data!, isNew: response.status === 201 }
    },
    onSuccess: ({ job, isNew }) =>
      navigate(`/jobs/${job.job_id}`, { state: isNew ? null : { notice: texts.found } }),
  })
  return { submit: mutate, error, isBusy: isPending }
}

type Submission = ReturnType<typeof submissionOf>['submission']

/** Errors are shown once a field was left or the form was sent, not while it is first filled in. */
function useShownErrors(errors: Errors) {
  const [seen, setSeen] = useState<ReadonlySet<string>>(new Set())
  const [attempts, setAttempts] = useState(0)
  return {
    attempts,
    of: (name: string) => (attempts > 0 || seen.has(name) ? errors[name] : undefined),
    show: (name: string) => setSeen((before) => new Set(before).add(name)),
    showAll: () => setAttempts((before) => before + 1),
  }
}

/** After an attempt that was refused, the first field to mend has the focus. */
function useFocusOnFault(form: RefObject<HTMLFormElement | null>, attempts: number, error: unknown) {
  useEffect(() => {
    const fault = attempts > 0 ? form.current?.querySelector<HTMLElement>('[aria-invalid]') : null
    const folded = fault?.closest('details')
    if (folded) folded.open = true
    fault?.focus()
  }, [form, attempts, error])
}
