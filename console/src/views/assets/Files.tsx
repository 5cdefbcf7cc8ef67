import { useQuery } from '@tanstack/react-query'

import { getJson, VIEW } from '../../api/client'
import type { AssetVersion } from '../../api/model'
import { useSession } from '../../session/session'
import { assets } from '../../texts/assets'
import { bytes } from '../../ui/format'
import { storedFiles, type StacFile } from './outputs'

interface Item {
  assets: Record<string, StacFile>
}

/** The files of a version with their sizes, as the catalogue has them: it knows only what is in service. */
export function Files({ version }: { version: AssetVersion }) {
  const { services } = useSession().view
  const { stac_collection_id: collection, stac_item_id: item } = version
  const isInCatalogue = version.approved_revision === version.revision && !version.deleted_at
  const address = `${VIEW}/stac/collections/${collection}/items/${item}`
  const { data } = useQuery({
    queryKey: ['asset', version.asset_id, 'files', address, version.revision],
    queryFn: ({ signal }) => getJson<Item>(address, signal),
    enabled: Boolean(services && isInCatalogue && collection && item),
    staleTime: 60_000,
  })
  const files = isInCatalogue ? storedFiles(data?.assets ?? {}) : []
  if (files.length === 0) return null
  return (
    <>
      <h4>{assets.details.files}</h4>
      <ul className="assets-files">
        {files.map(({ path, size }) => (
          <li key={path}>
            <code>{path}</code> <span className="soft">{size !== null && bytes(size)}</span>
          </li>
        ))}
      </ul>
    </>
  )
}
