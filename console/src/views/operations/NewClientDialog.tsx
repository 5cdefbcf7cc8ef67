import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { clientRoleValues } from '../../api/orchestrator'
import { platforms } from '../../data/platforms'
import { operations } from '../../texts/operations'
import { shared } from '../../texts/shared'
import { Dialog } from '../../ui/Dialog'
import { Field } from '../../ui/Field'
import { addClient, type Issued, type Role } from './clientDeeds'

const texts = operations.clients
const ID_MAX = 63
const NAME_MAX = 255

interface Props {
  onDone: (issued: Issued) => void
  onClose: () => void
}

export function NewClientDialog({ onDone, onClose }: Props) {
  const [id, setId] = useState('')
  const [name, setName] = useState('')
  const [roles, setRoles] = useState<Role[]>([])
  const [platform, setPlatform] = useState('')
  const isSubmitter = roles.includes('submitter')

  async function confirm() {
    const platform_id = isSubmitter ? platform : null
    onDone(await addClient({ client_id: id.trim(), display_name: name.trim(), roles, platform_id }))
  }

  return (
    <Dialog title={texts.add} action={texts.add} onConfirm={confirm} onClose={onClose}>
      <Field label={texts.id} hint={texts.idHint}>
        {(control) => (
          <input
            {...control}
            required
            pattern="[a-z][a-z0-9\-]+"
            maxLength={ID_MAX}
            autoComplete="off"
            value={id}
            onChange={(event) => setId(event.target.value)}
          />
        )}
      </Field>
      <Field label={texts.name}>
        {(control) => (
          <input
            {...control}
            required
            maxLength={NAME_MAX}
            autoComplete="off"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <Roles roles={roles} onChange={setRoles} />
      {isSubmitter && <PlatformChoice value={platform} onChange={setPlatform} />}
    </Dialog>
  )
}

function Roles({ roles, onChange }: { roles: Role[]; onChange: (roles: Role[]) => void }) {
  const toggle = (role: Role) =>
    onChange(roles.includes(role) ? roles.filter((each) => each !== role) : [...roles, role])
  return (
    <fieldset className="operations-roles">
      <legend>{texts.roles}</legend>
      {clientRoleValues.map((role) => (
        <label key={role}>
          <input type="checkbox" checked={roles.includes(role)} onChange={() => toggle(role)} />
          {shared.roles[role] ?? role}: {texts.aboutRoles[role]}
        </label>
      ))}
    </fieldset>
  )
}

/** A submitter speaks for one partner. */
function PlatformChoice({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const { data } = useQuery(platforms())
  return (
    <Field label={texts.platform} hint={texts.platformHint}>
      {(control) => (
        <select {...control} required value={value} onChange={(event) => onChange(event.target.value)}>
          <option value="">{texts.choose}</option>
          {(data?.items ?? []).map(({ platform_id: id, display_name: name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}
