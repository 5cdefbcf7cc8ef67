/** Two maps of the same place, one over the other, and a divider between them. */

import type { Map } from 'maplibre-gl'
import { useEffect, useImperativeHandle, useRef, useState } from 'react'
import type { CSSProperties, KeyboardEvent, PointerEvent, Ref } from 'react'

import { map as texts } from '../texts/map'
import type { Bbox } from './bbox'
import type { KeptCamera, Properties } from './behaviour'
import { MapControls } from './MapControls'
import { MapFrame, type Drawing, type MapHandle } from './MapFrame'

interface Side {
  /** What this side shows, in a few words. */
  name: string
  drawing: Drawing | null
  onPick?: (features: Properties[]) => void
}

interface SwipeProps {
  label: string
  left: Side
  right: Side
  extent: Bbox | null
  camera?: KeptCamera
  ref?: Ref<MapHandle>
}

export function SwipeMap({ label, left, right, extent, camera, ref }: SwipeProps) {
  const [position, setPosition] = useState(50)
  const [leftMap, setLeftMap] = useState<Map | null>(null)
  const [rightMap, setRightMap] = useState<Map | null>(null)
  const frame = useRef<MapHandle>(null)
  const zoomToExtent = () => frame.current?.zoomToExtent()
  useTogether(leftMap, rightMap)
  useImperativeHandle(ref, () => ({ zoomToExtent }), [])
  return (
    <div className="map-swipe" style={{ '--swipe': `${position}%` } as CSSProperties}>
      <div className="map-left">
        <MapFrame {...side(label, left)} extent={extent} camera={camera} onMap={setLeftMap} isBare />
      </div>
      <div className="map-right">
        <MapFrame {...side(label, right)} extent={extent} camera={camera} onMap={setRightMap} isBare ref={frame} />
      </div>
      <span className="map-side-name left">{left.name}</span>
      <span className="map-side-name right">{right.name}</span>
      <Divider position={position} onMove={setPosition} names={[left.name, right.name]} />
      <MapControls map={rightMap} onExtent={extent && zoomToExtent} />
    </div>
  )
}

function side(label: string, { name, drawing, onPick }: Side) {
  return { label: texts.sideLabel(label, name), drawing, onPick }
}

/** Moves each map with the other. */
function useTogether(one: Map | null, other: Map | null): void {
  useEffect(() => {
    if (one === null || other === null) return
    let isFollowing = false
    const lead = (leader: Map, follower: Map) => () => {
      if (isFollowing) return
      isFollowing = true
      follower.jumpTo({ center: leader.getCenter(), zoom: leader.getZoom() })
      isFollowing = false
    }
    const subscriptions = [one.on('move', lead(one, other)), other.on('move', lead(other, one))]
    lead(one, other)()
    return () => subscriptions.forEach((subscription) => subscription.unsubscribe())
  }, [one, other])
}

const STEP = 2
const LEAP = 10
const STEPS: Record<string, number> = {
  ArrowLeft: -STEP,
  ArrowDown: -STEP,
  ArrowRight: STEP,
  ArrowUp: STEP,
  PageDown: -LEAP,
  PageUp: LEAP,
}
const ENDS: Record<string, number> = { Home: 0, End: 100 }

interface DividerProps {
  /** In percent from the left. */
  position: number
  onMove: (position: number) => void
  names: [string, string]
}

function Divider({ position, onMove, names }: DividerProps) {
  function step(event: KeyboardEvent) {
    const next = ENDS[event.key] ?? (event.key in STEPS ? position + STEPS[event.key]! : null)
    if (next === null) return
    event.preventDefault()
    onMove(within(next))
  }

  function drag(event: PointerEvent<HTMLDivElement>) {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return
    const { left, width } = event.currentTarget.parentElement!.getBoundingClientRect()
    onMove(within((100 * (event.clientX - left)) / width))
  }

  return (
    <div
      className="map-divider"
      role="slider"
      tabIndex={0}
      aria-label={texts.divider(...names)}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(position)}
      aria-valuetext={texts.dividerAt(Math.round(position), ...names)}
      onKeyDown={step}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
    />
  )
}

function within(percent: number): number {
  return Math.min(100, Math.max(0, percent))
}
