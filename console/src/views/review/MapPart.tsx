import type { Ref } from 'react'

import type { MapHandle } from '../../map'
import { useSession } from '../../session/session'
import { review as texts } from '../../texts/review'
import { Notice } from '../../ui/notices'
import { Card } from '../../ui/parts'
import type { BothKnown } from './known'
import { MapCard } from './MapCard'
import type { MapView } from './mapView'
import type { UnderReview } from './underReview'

interface Props {
  under: UnderReview
  known: BothKnown
  view: MapView
  handle: Ref<MapHandle>
}

/** The map, or why there is none. */
export function MapPart({ under, known, view, handle }: Props) {
  const { here, there } = known.places
  const absence = useAbsence(under)
  if (here === null) {
    return (
      <Card title={texts.map.title}>
        <Notice kind="info">{absence}</Notice>
      </Card>
    )
  }
  const { data_type: dataType } = under.asset
  return <MapCard dataType={dataType} here={here} there={there} told={known.here.raster} view={view} handle={handle} />
}

function useAbsence({ version }: UnderReview): string {
  const { view, may } = useSession()
  if (!view.services) return texts.map.noServices
  if (!may('review')) return texts.map.notForYou
  const isUnderWay = version.processing_state === 'queued' || version.processing_state === 'processing'
  return isUnderWay ? texts.map.notMade : texts.map.nothingMade
}
