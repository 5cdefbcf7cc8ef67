/** The two APIs: the gateway's own, and the orchestrator's, which operators reach through it. */

import createClient, { type Middleware } from 'openapi-fetch'

import { shared } from '../texts/shared'
import type { paths as GatewayPaths } from './gateway'
import type { paths as OrchestratorPaths } from './orchestrator'
import { Problem, problemOf } from './problem'

/** Where operators reach the orchestrator. */
export const ORCHESTRATOR = '/api/proxy/orchestrator'
/** Where staff reach the tiles, features and catalogue, previews included. */
export const VIEW = '/api/view'

/** A page of another site cannot send this header: by it the gateway knows that a change was made here. */
const OURS = { name: 'X-Graticule-Console', value: '1' }
const SAFE = new Set(['GET', 'HEAD'])

type Listener = () => void
const signedOut = new Set<Listener>()

/** Tells when the gateway does not know the caller any more; gives what ends that. */
export function onSignedOut(listener: Listener): () => void {
  signedOut.add(listener)
  return () => signedOut.delete(listener)
}

const guard: Middleware = {
  onRequest({ request }) {
    if (!SAFE.has(request.method)) request.headers.set(OURS.name, OURS.value)
    return request
  },
  async onResponse({ response, request }) {
    if (response.ok) return
    if (response.status === 401 && !request.url.endsWith('/api/session')) signedOut.forEach((listener) => listener())
    throw await problemOf(response)
  },
  onError() {
    return new Problem(0, 'unreachable', shared.unreachable)
  },
}

export const gateway = createClient<GatewayPaths>({ baseUrl: '' })
export const orchestrator = createClient<OrchestratorPaths>({ baseUrl: ORCHESTRATOR })
gateway.use(guard)
orchestrator.use(guard)

/** Gives the content of an answer; refusals were thrown as a `Problem` before. */
export async function content<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T
}

/** Gets a document that is in no OpenAPI document of ours, such as a TileJSON of the services. */
export async function getJson<T>(url: string, signal?: AbortSignal): Promise<T> {
  let response: Response
  try {
    response = await fetch(url, { headers: { Accept: 'application/json' }, signal })
  } catch (error) {
    throw signal?.aborted ? error : new Problem(0, 'unreachable', shared.unreachable)
  }
  if (!response.ok) {
    if (response.status === 401) signedOut.forEach((listener) => listener())
    throw await problemOf(response)
  }
  return (await response.json()) as T
}
