/** What a browser has and Node has not: a page with an address. What it asks for is answered by the tests. */

import type { TestContext } from 'node:test'

export const ORIGIN = 'https://graticule.test'

type Answer = (request: Request) => Response | Promise<Response>

let answer: Answer | null = null

/** Addresses that the page asks for begin at its own. */
class PageRequest extends Request {
  constructor(input: RequestInfo | URL, init?: RequestInit) {
    super(typeof input === 'string' ? new URL(input, ORIGIN) : input, init)
  }
}

/** Keeps what is asked for from now on, and answers it. */
export function answerWith(context: TestContext, answering: Answer): Request[] {
  const asked: Request[] = []
  answer = (request) => {
    asked.push(request.clone())
    return answering(request)
  }
  context.after(() => (answer = null))
  return asked
}

export function json(body: unknown, status = 200): Response {
  return Response.json(body, { status })
}

/** A request as a test compares it: `POST /api/x?y=1`. */
export function told({ method, url }: Request): string {
  return `${method} ${url.replace(ORIGIN, '')}`
}

Object.assign(globalThis, {
  location: new URL(ORIGIN),
  Request: PageRequest,
  fetch: async (input: RequestInfo | URL, init?: RequestInit) => {
    if (answer === null) throw new Error(`Nobody answers ${String(input)}.`)
    return answer(new PageRequest(input, init))
  },
})
