/** Maps, loaded where one is shown: MapLibre is larger than all the rest of the console. */

import './instead.css'

import { lazy, Suspense, type ComponentType } from 'react'

import { map as texts } from '../texts/map'
import { Failsafe } from '../ui/Failsafe'
import { Loading, Notice } from '../ui/notices'

export { asBbox, type Bbox } from './bbox'
export type { KeptCamera, Properties } from './behaviour'
export { MERGED_COUNT } from './counts'
export type { Extent } from './extents'
export { featureOverlay, rasterOverlay } from './layers'
export type { Drawing, MapHandle } from './MapFrame'
export { at, previewOf, serviceOf, useTileSet, type DataType, type Place, type TileSet } from './services'

/** One map: `label`, `drawing`, `extent`, and what is to be told. */
export const TileMap = onDemand(lazy(async () => ({ default: (await import('./TileMap')).TileMap })))
/** Two maps with a divider between them. */
export const SwipeMap = onDemand(lazy(async () => ({ default: (await import('./SwipeMap')).SwipeMap })))
/** Boxes of many data: `extents`, `selected`, `onSelect`, `onMove`. */
export const ExtentsMap = onDemand(lazy(async () => ({ default: (await import('./ExtentsMap')).ExtentsMap })))

function onDemand<Props extends object>(Part: ComponentType<Props>) {
  return function OnDemand(props: Props) {
    if (!canDraw()) return <Instead>{texts.noWebGl}</Instead>
    return (
      <Failsafe instead={<Instead>{texts.broken}</Instead>}>
        <Suspense fallback={<Loading />}>
          <Part {...props} />
        </Suspense>
      </Failsafe>
    )
  }
}

let isAble: boolean | undefined

/** Whether this browser draws maps; asked once, for the answer costs a context. */
function canDraw(): boolean {
  isAble ??= document.createElement('canvas').getContext('webgl2') !== null
  return isAble
}

/** Tells, in the place of a map, why there is none. */
function Instead({ children }: { children: string }) {
  return (
    <div className="map-instead">
      <Notice kind="warning">{children}</Notice>
    </div>
  )
}
