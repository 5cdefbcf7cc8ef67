import { jobStatusValues } from '../../api/gateway'
import { useWorkflows } from '../../data/workflows'
import { jobs as texts } from '../../texts/jobs'
import { shared } from '../../texts/shared'
import { Button } from '../../ui/Button'
import { Choice } from '../../ui/Choice'
import { Field } from '../../ui/Field'
import { TypedText } from '../../ui/TypedText'
import { isoOf, localOf, type Filters } from './filters'

const TEXT_MAX = 64

interface Props {
  filters: Filters
  isFiltered: boolean
  onChange: (changes: Partial<Filters>) => void
  onClear: () => void
}

export function JobFilters({ filters, isFiltered, onChange, onClear }: Props) {
  return (
    <div className="filters jobs-filters" role="search" aria-label={texts.filters}>
      <Field label={texts.search} hint={texts.searchHint} className="jobs-search">
        {(props) => (
          <TypedText
            {...props}
            type="search"
            maxLength={TEXT_MAX}
            value={filters.q}
            onChange={(q) => onChange({ q })}
          />
        )}
      </Field>
      <Choice
        label={texts.status}
        value={filters.status}
        any={texts.all}
        choices={jobStatusValues.map((status) => [status, shared.states[status] ?? status])}
        onChange={(status) => onChange({ status })}
      />
      <Choice
        label={texts.workflow}
        value={filters.workflow}
        any={texts.all}
        choices={useWorkflowChoices(filters.workflow)}
        onChange={(workflow) => onChange({ workflow })}
      />
      <Field label={texts.by} className="jobs-who">
        {(props) => (
          <TypedText {...props} maxLength={TEXT_MAX} value={filters.by} onChange={(by) => onChange({ by })} />
        )}
      </Field>
      <When label={texts.after} value={filters.after} onChange={(after) => onChange({ after })} />
      <When label={texts.before} value={filters.before} onChange={(before) => onChange({ before })} />
      <Button disabled={!isFiltered} onClick={onClear}>
        {texts.clear}
      </Button>
    </div>
  )
}

/** The workflows that are there, and the one that is chosen, whose file may be gone. */
function useWorkflowChoices(chosen: string): [string, string][] {
  const { data } = useWorkflows()
  const known = new Set(data?.items.map((workflow) => workflow.workflow_id))
  if (chosen) known.add(chosen)
  return [...known].sort().map((id) => [id, id])
}

/** A time of day here; in the address it is in UTC, and the same for everyone. */
function When({ label, value, onChange }: { label: string; value: string; onChange: (value: string) => void }) {
  return (
    <Field label={label} className="jobs-when">
      {(props) => (
        <TypedText
          {...props}
          type="datetime-local"
          value={localOf(value)}
          onChange={(local) => onChange(isoOf(local))}
        />
      )}
    </Field>
  )
}
