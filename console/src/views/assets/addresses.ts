/** The addresses of services: those within the house, and those for the public. */

export interface Served {
  version_ordinal: number
  service_urls: Record<string, string>
}

export interface Address {
  service: string
  ordinal: number
  url: string
}

const PUBLIC = 'external_'

export function grouped(items: Served[]): { internal: Address[]; public: Address[] } {
  const all = items.flatMap(({ version_ordinal, service_urls }) =>
    Object.entries(service_urls).map(([service, url]) => ({ service, ordinal: version_ordinal, url })),
  )
  return {
    internal: all.filter(({ service }) => !service.startsWith(PUBLIC)),
    public: all
      .filter(({ service }) => service.startsWith(PUBLIC))
      .map((address) => ({ ...address, service: address.service.slice(PUBLIC.length) })),
  }
}
