import type { ReactNode } from 'react'

import type { PlatformRequest } from '../../api/model'
import { useMay } from '../../session/session'
import { assets } from '../../texts/assets'
import { CopyButton, Json, StateBadge, Time } from '../../ui/parts'
import { Addresses } from './Addresses'
import type { Served } from './addresses'
import { ChainJob } from './ChainJob'
import { sourceOf, type Chain } from './lineage'
import type { Output } from './outputs'

const texts = assets.lineage

/** One chain, drawn from left to right, or downwards where there is little room. */
export function ChainSteps({ chain, served }: { chain: Chain; served: Served[] }) {
  const operates = useMay('operate')
  return (
    <ol className="assets-chain">
      <Step name={texts.steps.request} none={texts.noRequest}>
        {chain.requests.map((request) => (
          <Request key={request.request_id} request={request} />
        ))}
      </Step>
      {operates && (
        <Step name={texts.steps.job} none={texts.noJob}>
          {chain.jobs.map((job) => (
            <ChainJob key={job.job_id} job={job} />
          ))}
        </Step>
      )}
      <Step name={texts.steps.outputs} none={texts.noOutputs}>
        {chain.outputs.map((output) => (
          <MadeThing key={output.name} output={output} />
        ))}
      </Step>
      {chain.publishing.length > 0 && (
        <Step name={texts.steps.publishing} none="">
          {chain.publishing.map((job) => (
            <ChainJob key={job.job_id} job={job} />
          ))}
        </Step>
      )}
      <Step name={texts.steps.services} none={texts.noServices}>
        {served.length > 0 ? [<Addresses key="served" items={served} none={assets.services.noneAt} />] : []}
      </Step>
    </ol>
  )
}

function Step({ name, none, children }: { name: string; none: string; children: ReactNode[] }) {
  return (
    <li>
      <h4>{name}</h4>
      {children.length > 0 ? children : <p className="soft">{none}</p>}
    </li>
  )
}

function Request({ request }: { request: PlatformRequest }) {
  const source = sourceOf(request)
  return (
    <div className="assets-chain-part">
      <p>
        <StateBadge state={request.status} /> <Time at={request.created_at} />
      </p>
      {request.submitted_by && <p className="soft">{texts.requestBy(request.submitted_by)}</p>}
      {source && (
        <p>
          <span className="soft">{texts.from}</span> <code>{source}</code>
        </p>
      )}
      {request.retry_count > 0 && <p className="soft">{texts.retried(request.retry_count)}</p>}
      {request.last_error && <p className="assets-error">{request.last_error}</p>}
      <details>
        <summary>{texts.asked}</summary>
        <Json value={request.request_body} label={texts.asked} />
      </details>
    </div>
  )
}

function MadeThing({ output: { name, value } }: { output: Output }) {
  return (
    <div className="assets-chain-part">
      <span className="soft">{name}</span>
      <span className="assets-code">
        <code>{value}</code> <CopyButton text={value} of={assets.details.path(name)} />
      </span>
    </div>
  )
}
