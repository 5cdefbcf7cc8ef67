/** Words of what several views show. */

export const parts = {
  validation: {
    title: 'Validation',
    none: 'There is no report on the file that was sent.',
    noFindings: 'Nothing was found in the file that was sent.',
    outcomes: { ok: 'Good', fix: 'Repaired', reject: 'Unusable' },
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
  },
}
