/** The map of a review: this version alone, or beside the one in service with a divider between them. */

import { useCallback, useRef, useState, type Ref } from 'react'

import { featureOverlay, rasterOverlay, SwipeMap, TileMap, useTileSet } from '../../map'
import type { DataType, Drawing, KeptCamera, MapHandle, Place, Properties, TileSet } from '../../map'
import { review as texts } from '../../texts/review'
import { ProblemNotice } from '../../ui/notices'
import { PickedFeatures } from './PickedFeatures'

/** How both sides are drawn. */
interface Painting {
  opacity: number
  /** Of features; null: as the theme has it. */
  colour: string | null
  /** Of a raster: what the services are told. Null while that is not known yet. */
  parameters: [string, string][] | null
}

interface Props {
  dataType: DataType
  here: Place
  /** What is in service; null when the map shows this version alone. */
  there: Place | null
  painting: Painting
  handle: Ref<MapHandle>
}

export function ReviewMap({ dataType, here, there, painting, handle }: Props) {
  const [picked, setPicked] = useState<Properties[]>([])
  const camera: KeptCamera = useRef(null)
  const ours = useTileSet(here, dataType)
  const theirs = useTileSet(there, dataType)
  const ourDrawing = useDrawing(ours.data, painting)
  const theirDrawing = useDrawing(theirs.data, painting)
  const left = there && !theirs.error ? { name: texts.inService, drawing: theirDrawing, onPick: setPicked } : null
  const right = ours.error ? null : { name: texts.thisVersion, drawing: ourDrawing, onPick: setPicked }
  const only = right ?? left
  const extent = (ours.data ?? theirs.data)?.bounds ?? null
  const common = { label: texts.map.label, extent, camera, ref: handle }
  return (
    <>
      <Missing name={texts.thisVersion} query={ours} />
      {there && <Missing name={texts.inService} query={theirs} />}
      {only && (
        <div className="review-map-frame">
          {left && right ? (
            <SwipeMap {...common} left={left} right={right} />
          ) : (
            <TileMap {...common} drawing={only.drawing} onPick={setPicked} />
          )}
          {picked.length > 0 && <PickedFeatures features={picked} onClose={() => setPicked([])} />}
        </div>
      )}
    </>
  )
}

/** Tells which of the two cannot be seen, and why; the other one still can. */
function Missing({ name, query: { error, refetch } }: { name: string; query: ReturnType<typeof useTileSet> }) {
  if (!error) return null
  return (
    <div className="review-missing">
      <p>{texts.map.missing(name)}</p>
      <ProblemNotice error={error} onRetry={() => void refetch()} />
    </div>
  )
}

function useDrawing(tileSet: TileSet | undefined, { opacity, colour, parameters }: Painting): Drawing | null {
  const draw = useCallback<Drawing>(
    (palette) => {
      if (tileSet!.dataType === 'vector') return featureOverlay(tileSet!, { opacity, colour }, palette)
      return rasterOverlay(tileSet!, { opacity, parameters: parameters! }, palette)
    },
    [tileSet, opacity, colour, parameters],
  )
  const isKnown = tileSet && (tileSet.dataType === 'vector' || parameters !== null)
  return isKnown ? draw : null
}
