/** What of the map keys and controls change alike: one side or two, and the opacity. */

import { useState, type RefObject } from 'react'

import type { MapHandle } from '../../map'
import { useAddress } from '../../ui/address'
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
  const [parameters, change] = useAddress()
  const [opacity, setOpacity] = useState(100)
  return {
    canSwipe,
    isSwiping: canSwipe && parameters.get('map') === SWIPE,
    setSwiping: (isSwiping) => change({ map: isSwiping ? SWIPE : null }),
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
