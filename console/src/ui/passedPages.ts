/** The pages of a list that were passed, as an entry of the history holds them. */

export interface PassedPages {
  filter: string
  cursors: string[]
}

export function passedPages(state: unknown): PassedPages | undefined {
  return (state as { pages?: PassedPages } | null)?.pages
}
