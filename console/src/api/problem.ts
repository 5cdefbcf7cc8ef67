/** What the gateway refuses, as it tells it: RFC 9457 problem documents. */

import { shared } from '../texts/shared'

export interface Fault {
  loc: (string | number)[]
  message: string
}

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly faults: Fault[] = [],
    /** How long one is asked to wait. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(message)
    this.name = 'Problem'
  }

  /** Whether the gateway did not answer: nothing did, or a proxy before it that does not reach it either. */
  get isUnreachable(): boolean {
    return this.status === 0 || (OF_A_PROXY.has(this.status) && this.code === String(this.status))
  }
}

/** The gateway itself answers with these too, but as a problem document with a code. */
const OF_A_PROXY = new Set([502, 503, 504])

export async function problemOf(response: Response): Promise<Problem> {
  const told = (await response.json().catch(() => null)) ?? {}
  const faults = Array.isArray(told.errors) ? (told.errors as Fault[]) : []
  return new Problem(
    response.status,
    typeof told.code === 'string' ? told.code : String(response.status),
    typeof told.detail === 'string' ? told.detail : shared.failed(response.status),
    typeof told.hint === 'string' ? told.hint : null,
    faults,
    Number(response.headers.get('Retry-After')) || null,
  )
}
