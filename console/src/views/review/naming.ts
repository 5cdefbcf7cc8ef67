/** What assets and versions are called here. */

/** The partner's own identifiers, one after the other. */
export function refsText(refs: Record<string, unknown>): string {
  return Object.values(refs).map(String).join(' / ')
}
