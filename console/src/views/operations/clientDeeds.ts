/** What is done with clients. */

import { content, orchestrator } from '../../api/client'
import type { components } from '../../api/orchestrator'

export type ClientDeed = 'rotate' | 'disable' | 'enable'
export type NewClient = components['schemas']['NewClient']
export type Role = NewClient['roles'][number]

/** A key that was just made: nobody can show it again. */
export interface Issued {
  clientId: string
  key: string
}

export async function addClient(client: NewClient): Promise<Issued> {
  return issued(await content(orchestrator.POST('/api/v1/clients', { body: client })))
}

/** Gives the new key where there is one. */
export async function dealWith(deed: ClientDeed, clientId: string): Promise<Issued | null> {
  const params = { path: { client_id: clientId } }
  if (deed === 'rotate') {
    return issued(await content(orchestrator.POST('/api/v1/clients/{client_id}/rotate', { params })))
  }
  if (deed === 'disable') await orchestrator.POST('/api/v1/clients/{client_id}/disable', { params })
  else await orchestrator.POST('/api/v1/clients/{client_id}/enable', { params })
  return null
}

function issued({ client_id: clientId, key }: { client_id: string; key: string }): Issued {
  return { clientId, key }
}
