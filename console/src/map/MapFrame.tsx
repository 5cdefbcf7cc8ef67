/** A map in its frame: told what to draw and where to begin, with its buttons and what it owes to others. */

import type { Map } from 'maplibre-gl'
import { useEffect, useImperativeHandle, useMemo, useRef, type ReactNode, type Ref } from 'react'

import { map as texts } from '../texts/map'
import { useBase } from './base'
import type { Bbox } from './bbox'
import { useCounts, useDrawing, useFault, useFit, useMapIn, useMoves, usePicking, useStanding } from './behaviour'
import type { KeptCamera, Properties } from './behaviour'
import { MapControls } from './MapControls'
import { NOTHING, together, type Overlay } from './overlay'
import { usePalette, type Palette } from './palette'

/** Draws in the colours of the theme; the same function draws the same. */
export type Drawing = (palette: Palette) => Overlay

export interface MapHandle {
  zoomToExtent(): void
}

export interface FrameProps {
  /** What the map shows, for those who cannot see it. */
  label: string
  /** Null while what is to be drawn is not known yet. */
  drawing: Drawing | null
  /** Where the map begins, and where its button leads. */
  extent: Bbox | null
  /** Given where one map takes the place of another. */
  camera?: KeptCamera
  onPick?: (features: Properties[]) => void
  onPoint?: (features: Properties[]) => void
  onMove?: (bbox: Bbox) => void
  onMap?: (map: Map | null) => void
  /** Without its buttons where others stand beside it. */
  isBare?: boolean
  ref?: Ref<MapHandle>
  children?: ReactNode
}

export function MapFrame({ label, drawing, extent, camera, isBare = false, ref, children, ...heard }: FrameProps) {
  const frame = useRef<HTMLDivElement>(null)
  const container = useRef<HTMLDivElement>(null)
  const palette = usePalette()
  const base = useBase()
  const overlay = useMemo(() => drawing?.(palette) ?? NOTHING, [drawing, palette])
  const below = useMemo(() => base.draw(palette), [base, palette])
  const whole = useMemo(() => together(below, overlay), [below, overlay])

  const map = useMapIn(container, label)
  useDrawing(map, whole)
  useStanding(map, frame, whole, drawing === null || base.isPending)
  usePicking(map, overlay.picked, heard)
  useMoves(map, heard.onMove)
  const zoomToExtent = useFit(map, extent, camera)
  const fault = useFault(map, overlay)
  const counts = useCounts(map, overlay.counted)
  const { onMap } = heard
  useEffect(() => onMap?.(map), [map, onMap])
  useImperativeHandle(ref, () => ({ zoomToExtent }), [zoomToExtent])

  return (
    <div ref={frame} className="map-frame" data-state="loading">
      <div ref={container} className="map-canvas" />
      {!isBare && <MapControls map={map} onExtent={extent ? zoomToExtent : null} />}
      {fault !== null && (
        <p className="map-fault" role="status">
          {texts.fault(fault)}
        </p>
      )}
      {counts !== null && (
        <p className="map-counts" role="status">
          {counts}
        </p>
      )}
      {children}
      <p className="map-attribution">{base.attribution}</p>
    </div>
  )
}
