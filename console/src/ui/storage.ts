/** What the browser keeps for us; one that keeps nothing is no hindrance. */

type Kind = 'localStorage' | 'sessionStorage'

export function kept(kind: Kind, place: string): string | null {
  try {
    return window[kind].getItem(place)
  } catch {
    return null
  }
}

/** Keeps a value, or with `null` forgets it; tells whether it could. */
export function keep(kind: Kind, place: string, value: string | null): boolean {
  try {
    if (value === null) window[kind].removeItem(place)
    else window[kind].setItem(place, value)
    return true
  } catch {
    return false
  }
}
