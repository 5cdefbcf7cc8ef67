/** What a map does by itself: it is made and taken down, drawn, watched, and asked what lies under the pointer. */

import type { LngLat, Map, MapMouseEvent, PointLike } from 'maplibre-gl'
import { useCallback, useEffect, useRef, useState, type RefObject } from 'react'

import { map as texts } from '../texts/map'
import { onMap, rolled, type Bbox } from './bbox'
import { countsInView, countText } from './counts'
import { MapLibre, ScaleControl } from './engine'
import { draw, NOTHING, type CountedTiles, type Overlay } from './overlay'

/** The properties of a feature. */
export type Properties = Record<string, unknown>

type Frame = RefObject<HTMLDivElement | null>

/** Where a map was looked at last; the next one in its place begins there. */
export type KeptCamera = RefObject<{ center: LngLat; zoom: number } | null>

const WORLD: Bbox = [-180, -60, 180, 75]
const REACH_PIXELS = 3
const FIT = { padding: 24, maxZoom: 16 }
/** Marks moves that nobody but the console wanted. */
const OURS = { isOurs: true }

/** Makes a map in a frame; gives it once it can be drawn on. */
export function useMapIn(frame: Frame, label: string): Map | null {
  const [map, setMap] = useState<Map | null>(null)
  useEffect(() => {
    if (frame.current === null) return
    const made = newMap(frame.current)
    made.once('style.load', () => setMap(made))
    return () => {
      setMap(null)
      made.remove()
    }
  }, [frame])
  useEffect(() => map?.getCanvas().setAttribute('aria-label', label), [map, label])
  return map
}

/** North is up, and one looks straight down: data are compared here. */
function newMap(container: HTMLElement): Map {
  const map = new MapLibre({
    container,
    style: { version: 8, sources: {}, layers: [] },
    bounds: WORLD,
    attributionControl: false, // it would take attributions for HTML
    dragRotate: false,
    maxPitch: 0,
    touchPitch: false,
    // One finger scrolls the page, which may be hardly larger than the map.
    cooperativeGestures: matchMedia('(pointer: coarse)').matches,
    locale: { 'CooperativeGesturesHandler.MobileHelpText': texts.twoFingers },
  })
  map.touchZoomRotate.disableRotation()
  map.keyboard.disableRotation()
  map.addControl(new ScaleControl(), 'bottom-left')
  return map
}

export function useDrawing(map: Map | null, overlay: Overlay): void {
  const drawn = useRef<{ map: Map; overlay: Overlay } | null>(null)
  useEffect(() => {
    if (map === null) return
    const before = drawn.current?.map === map ? drawn.current.overlay : NOTHING
    draw(map, before, overlay)
    drawn.current = { map, overlay }
  }, [map, overlay])
}

/** Writes `data-state` of the frame: `loading`, or `idle` when all that is in sight is drawn as it is wanted now. */
export function useStanding(map: Map | null, frame: Frame, overlay: Overlay, isPending: boolean): void {
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    element.dataset.state = 'loading'
    if (map === null || isPending) return
    const subscriptions = [
      map.on('dataloading', () => (element.dataset.state = 'loading')),
      map.on('movestart', () => (element.dataset.state = 'loading')),
      map.on('idle', () => (element.dataset.state = 'idle')),
    ]
    map.triggerRepaint()
    return () => subscriptions.forEach((subscription) => subscription.unsubscribe())
  }, [map, frame, overlay, isPending])
}

/** Tells what went wrong last; what is drawn anew begins without it. */
export function useFault(map: Map | null, overlay: Overlay): string | null {
  const [fault, setFault] = useState<string | null>(null)
  useEffect(() => {
    setFault(null)
    const subscription = map?.on('error', ({ error }) => setFault(error.message))
    return () => subscription?.unsubscribe()
  }, [map, overlay])
  return fault
}

/** Tells how many of how many features in view are shown, once all of them are drawn; null when all are. */
export function useCounts(map: Map | null, tiles: CountedTiles | undefined): string | null {
  const [told, setTold] = useState<string | null>(null)
  useEffect(() => {
    setTold(null)
    if (map === null || tiles === undefined) return
    const tell = () => {
      const zoom = Math.min(Math.max(Math.floor(map.getZoom()), tiles.minzoom), tiles.maxzoom)
      const counts = countsInView(tiles.tiles, { zoom, bounds: map.getBounds().toArray().flat() })
      setTold(map.getZoom() < tiles.minzoom ? null : countText(counts, tiles.featureCount))
    }
    const subscription = map.on('idle', tell)
    return () => subscription.unsubscribe()
  }, [map, tiles])
  return told
}

interface Picking {
  onPick?: (features: Properties[]) => void
  onPoint?: (features: Properties[]) => void
}

/** Tells which features are clicked (or, by Enter, in the middle of the map), and which the pointer is over. */
export function usePicking(map: Map | null, layers: string[] | undefined, { onPick, onPoint }: Picking): void {
  useEffect(() => {
    if (map === null || !layers?.length || !onPick) return
    const canvas = map.getCanvas()
    const pick = (at: PointLike) => onPick(featuresAt(map, at, layers))
    const enter = (event: KeyboardEvent) => {
      if (event.key === 'Enter') pick(map.project(map.getCenter()))
    }
    const point = ({ point: at }: MapMouseEvent) => {
      const features = featuresAt(map, at, layers)
      canvas.style.cursor = features.length > 0 ? 'pointer' : ''
      onPoint?.(features)
    }
    const subscriptions = [map.on('click', (event) => pick(event.point)), map.on('mousemove', point)]
    canvas.addEventListener('keydown', enter)
    return () => {
      canvas.removeEventListener('keydown', enter)
      subscriptions.forEach((subscription) => subscription.unsubscribe())
    }
  }, [map, layers, onPick, onPoint])
}

/** The features there, the highest first; a polygon is found by its area and by its outline, and counts once. */
function featuresAt(map: Map, at: PointLike, layers: string[]): Properties[] {
  const { x, y } = Array.isArray(at) ? { x: at[0], y: at[1] } : at
  const around: [PointLike, PointLike] = [
    [x - REACH_PIXELS, y - REACH_PIXELS],
    [x + REACH_PIXELS, y + REACH_PIXELS],
  ]
  const exact = map.queryRenderedFeatures([x, y], { layers })
  const found = exact.length > 0 ? exact : map.queryRenderedFeatures(around, { layers })
  const distinct = Object.fromEntries(found.map(({ properties }) => [JSON.stringify(properties), properties]))
  return Object.values(distinct)
}

/** Shows the extent as soon as it is known, or what was looked at before; gives what shows the extent again. */
export function useFit(map: Map | null, extent: Bbox | null, camera: KeptCamera | undefined): () => void {
  const begun = useRef<Map | null>(null)
  useEffect(() => {
    if (map === null || extent === null || begun.current === map) return
    begun.current = map
    if (camera?.current) map.jumpTo(camera.current, OURS)
    else map.fitBounds(onMap(extent), { ...FIT, animate: false }, OURS)
  }, [map, extent, camera])
  useEffect(() => {
    if (map === null || !camera) return
    const subscription = map.on('moveend', () => {
      // Until the extent is known the map shows the world, which nobody wanted to look at.
      if (begun.current === map) camera.current = { center: map.getCenter(), zoom: map.getZoom() }
    })
    return () => subscription.unsubscribe()
  }, [map, camera])
  return useCallback(() => {
    if (map && extent) map.fitBounds(onMap(extent), FIT)
  }, [map, extent])
}

/** Tells what the map shows, whenever someone has moved it. */
export function useMoves(map: Map | null, onMove: ((bbox: Bbox) => void) | undefined): void {
  useEffect(() => {
    if (map === null || !onMove) return
    const subscription = map.on('moveend', (event) => {
      if (!('isOurs' in event)) onMove(rolled(map.getBounds().toArray().flat() as Bbox))
    })
    return () => subscription.unsubscribe()
  }, [map, onMove])
}
