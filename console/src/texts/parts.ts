/** Words of what several views show. */

export const parts = {
  validation: {
    title: 'Validation',
    none: 'There is no validation report for this file.',
    noFindings: 'The file needed no changes.',
    outcomes: { ok: 'Good', fix: 'Repaired', reject: 'Rejected' },
    severities: { reject: 'Rejected', fix: 'Repaired', warning: 'Warning', info: 'Info' },
  },
  overtaken: {
    title: 'Nothing was changed. So it stands now; what you have said is kept.',
    clearance: 'Clearance',
    addresses: 'Addresses',
    inService: 'In service',
    version: (ordinal: number) => `Version ${ordinal}`,
    revision: (revision: number) => `revision ${revision}`,
    none: 'Nothing',
    unpublished: 'The asset was unpublished.',
    otherRevision: 'There is another revision now than the one that you looked at. Nothing was decided.',
    looked: (seen: number, there: number) => `You looked at revision ${seen}. Revision ${there} has taken its place.`,
    load: (revision: number) => `Look at revision ${revision}`,
  },
}
