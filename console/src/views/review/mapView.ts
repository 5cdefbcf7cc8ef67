/** What of the map keys and controls change alike: one side or two, and the opacity. */

import { useState, type RefObject } from 'react'
import { useSearchParams } from 'react-router'

import type { MapHandle } from '../../map'
import type { Shortcuts } from './shortcuts'

const SWIPE = 'swipe'
const STEP = 10

export interface MapView {
  canSwipe: boolean
  isSwiping: boolean
  setSwiping: (isSwiping: boolean) => void
  /** In percent. */
  opacity: number
  setOpacity: (percent: number) => void
}

/** Whether the map is swiped stands in the address. */
export function useMapView(canSwipe: boolean): MapView {
  const [parameters, setParameters] = useSearchParams()
  const [opacity, setOpacity] = useState(100)
  const setSwiping = (isSwiping: boolean) => {
    const next = new URLSearchParams(parameters)
    if (isSwiping) next.set('map', SWIPE)
    else next.delete('map')
    setParameters(next, { replace: true })
  }
  return {
    canSwipe,
    isSwiping: canSwipe && parameters.get('map') === SWIPE,
    setSwiping,
    opacity,
    setOpacity: (percent) => setOpacity(Math.min(100, Math.max(0, percent))),
  }
}

export function mapKeys(view: MapView, map: RefObject<MapHandle | null>): Shortcuts {
  return {
    s: view.canSwipe ? () => view.setSwiping(!view.isSwiping) : undefined,
    z: () => map.current?.zoomToExtent(),
    '[': () => view.setOpacity(view.opacity - STEP),
    ']': () => view.setOpacity(view.opacity + STEP),
  }
}
