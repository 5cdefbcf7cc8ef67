import { useCallback, useMemo, useState } from 'react'

import { map as texts } from '../texts/map'
import { around, type Bbox } from './bbox'
import type { Properties } from './behaviour'
import { extentsOverlay, shapesOf, type Extent } from './extents'
import { MapFrame } from './MapFrame'
import type { Palette } from './palette'

interface ExtentsProps {
  /** What the map shows, for those who cannot see it. */
  label?: string
  extents: readonly Extent[]
  selected?: string | null
  onSelect?: (id: string | null) => void
  /** Is told what the map shows, in degrees from -180 to 180, whenever it was moved. */
  onMove?: (bbox: Bbox) => void
}

/** Where many data are: a box for each, or a point where the box would be too small to be seen. */
export function ExtentsMap({ label = texts.extents, extents, selected = null, onSelect, onMove }: ExtentsProps) {
  const [pointed, setPointed] = useState<string | null>(null)
  const known = useSame(extents)
  const shapes = useMemo(() => shapesOf(known), [known])
  const drawing = useCallback((palette: Palette) => extentsOverlay(shapes, selected, palette), [shapes, selected])
  const pick = useCallback((found: Properties[]) => onSelect?.(smallest(found)?.id ?? null), [onSelect])
  const point = useCallback((found: Properties[]) => setPointed(smallest(found)?.label ?? null), [])
  const extent = useMemo(() => wanted(known, selected), [known, selected])
  return (
    <MapFrame label={label} drawing={drawing} extent={extent} onPick={pick} onPoint={point} onMove={onMove}>
      {pointed !== null && <p className="map-pointed">{pointed}</p>}
    </MapFrame>
  )
}

/** Gives the same list as long as it says the same: each new one would be drawn anew. */
function useSame(extents: readonly Extent[]): readonly Extent[] {
  const said = JSON.stringify(extents)
  return useMemo(() => JSON.parse(said) as Extent[], [said])
}

/** Where the button of the map leads: to what is selected, or to all. */
function wanted(extents: readonly Extent[], selected: string | null): Bbox | null {
  return extents.find(({ id }) => id === selected)?.bbox ?? around(extents.map(({ bbox }) => bbox))
}

function smallest(found: Properties[]): { id: string; label: string } | null {
  const told = found as { id: string; label: string; span: number }[]
  return told.toSorted((one, other) => one.span - other.span)[0] ?? null
}
