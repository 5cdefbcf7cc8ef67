/** Words of the workflows, and of the form that submits a job. */

import { plural } from './plural'

export const workflows = {
  title: 'Workflows',
  list: 'Workflows that can be submitted',
  none: 'There are no workflows. They are YAML files in the folders that the orchestrator is told of.',
  reload: 'Read the files anew',
  reloaded: (loaded: number, problems: number) =>
    `The orchestrator has read the files: ${plural(loaded, 'workflow', 'workflows')}, ` +
    `${plural(problems, 'problem', 'problems')}.`,
  columns: { name: 'Name', id: 'Id', version: 'Version', inputs: 'Inputs', description: 'Description' },

  problems: {
    title: 'Problems of files',
    told: (errors: number, warnings: number) =>
      [
        errors > 0 ? `${plural(errors, 'error', 'errors')}: what has one is not loaded` : null,
        warnings > 0 ? plural(warnings, 'warning', 'warnings') : null,
      ]
        .filter(Boolean)
        .join('; ') + '.',
    severity: { error: 'Error', warning: 'Warning' },
    columns: { severity: 'Severity', place: 'Where', message: 'What is wrong', hint: 'How to mend it' },
    place: (file: string, line: number | null) => (line === null ? file : `${file}:${line}`),
    node: (node: string) => `node ${node}`,
  },

  all: 'All workflows',
  version: (version: string) => `Version ${version}`,
  graph: 'Graph',
  graphOf: (name: string, version: string) => `Graph of ${name}, version ${version}`,
  earlier: 'This is an earlier version, as jobs ran it. A new job runs the current one.',
  toCurrent: 'Show the current version',

  versions: {
    title: 'Versions that jobs ran',
    list: 'Versions that jobs ran, newest first',
    none: 'No job has run this workflow yet.',
    version: 'Version',
    hash: 'Hash',
    since: 'First run',
    current: 'Current',
    shown: 'Shown',
    show: (version: string) => `Show version ${version}`,
  },

  recent: {
    title: 'Recent jobs',
    list: 'Recent jobs of this workflow',
    all: 'All of them',
    none: 'No job has run this workflow yet.',
  },

  form: {
    title: 'Submit a job',
    noInputs: 'This workflow has no inputs.',
    required: (name: string) => `${name} (required)`,
    missing: 'This is required.',
    notGiven: 'Not given',
    yes: 'Yes',
    no: 'No',
    byDefault: (text: string) => `When empty: ${text}.`,
    pattern: (pattern: string) => `Must match ${pattern}`,
    range: (least: string | null, most: string | null) =>
      least !== null && most !== null
        ? `From ${least} to ${most}.`
        : least !== null
          ? `At least ${least}.`
          : `At most ${most}.`,
    types: {
      string: null,
      integer: 'A whole number.',
      number: 'A number.',
      boolean: null,
      array: 'A list, as JSON.',
      object: 'An object, as JSON.',
    },
    notInteger: 'This is not a whole number.',
    tooLarge: 'This number has more digits than can be kept exactly.',
    notNumber: 'This is not a number.',
    notJson: (reason: string) => `This is not JSON: ${reason}`,
    notArray: 'This must be a list: […].',
    notObject: 'This must be an object: {…}.',
    least: (value: number) => `This must be at least ${value}.`,
    most: (value: number) => `This must be at most ${value}.`,
    more: 'More',
    priority: 'Priority',
    priorityHint: 'From 0 to 10; higher ones go first.',
    correlation: 'Correlation id',
    correlationHint: 'By which you find this job and what belongs to it.',
    key: 'Idempotency key',
    keyHint: 'A second submission with the same key gives the job of the first.',
    sameInputs: 'Of this workflow, the same inputs are one job: submitting them again leads to the one that is there.',
    resume: 'If that job has failed, let it go on',
    resumeHint: 'What has completed is kept. A job that runs or has completed stays as it is.',
    submit: 'Submit',
    mend: (faults: number) => `${plural(faults, 'field needs', 'fields need')} to be mended.`,
    found: 'No new job was made: this one was there already, with the same key or the same inputs.',
  },
}
