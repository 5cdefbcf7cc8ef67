import { useMemo, useState } from 'react'
import { Link } from 'react-router'

import type { Asset, Platform } from '../../api/model'
import { datasetName, partnerOf } from '../../data/names'
import { asBbox, ExtentsMap, type Bbox, type Extent } from '../../map'
import { assets as texts } from '../../texts/assets'
import { Button } from '../../ui/Button'
import { Card } from '../../ui/parts'
import { boxOf, boxText } from './filters'

interface Props {
  assets: Asset[]
  platforms: Platform[]
  /** The part of the map that is searched in, as the gateway takes it. */
  box: string | null
  pointed: string | null
  onPoint: (assetId: string | null) => void
  onBox: (box: string | null) => void
}

/** Where the assets of the page are. The map can be moved, and what it shows then be searched. */
export function AssetsMap({ assets, platforms, box, pointed, onPoint, onBox }: Props) {
  const [seen, setSeen] = useState<Bbox | null>(null)
  const extents = useMemo(() => assets.flatMap((asset) => extentOf(asset, platforms) ?? []), [assets, platforms])
  const chosen = assets.find((asset) => asset.asset_id === pointed)
  const search = (
    <div className="buttons">
      {box !== null && <Button onClick={() => onBox(null)}>{texts.map.everywhere}</Button>}
      <Button disabled={seen === null || boxOf(seen) === box} onClick={() => seen && onBox(boxOf(seen))}>
        {texts.map.search}
      </Button>
    </div>
  )
  return (
    <Card title={texts.map.title} actions={search} className="assets-map" flush>
      <div className="assets-map-frame">
        <ExtentsMap label={texts.map.label} extents={extents} selected={pointed} onSelect={onPoint} onMove={setSeen} />
      </div>
      <p className="assets-map-foot soft" aria-live="polite">
        {box !== null && <span>{texts.map.within(boxText(box.split(',').map(Number)))}</span>}
        <span>{extents.length > 0 ? texts.map.some(extents.length, assets.length) : texts.map.none}</span>
        {chosen && (
          <Link to={`/assets/${chosen.asset_id}`}>
            {texts.map.open(datasetName(chosen, partnerOf(chosen, platforms)))}
          </Link>
        )}
      </p>
    </Card>
  )
}

function extentOf(asset: Asset, platforms: Platform[]): Extent | null {
  const bbox = asBbox(asset.newest_version?.bbox)
  return bbox && { id: asset.asset_id, bbox, label: datasetName(asset, partnerOf(asset, platforms)) }
}
