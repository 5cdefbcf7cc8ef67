/** What lies below the data: the tiles that the installation names, or else the coastlines of the bundle. */

import type { ExpressionSpecification } from 'maplibre-gl'
import { useEffect, useMemo, useState } from 'react'

import { useSession, type SessionView } from '../session/session'
import { map as texts } from '../texts/map'
import { grid, land, type Land } from './coast'
import type { Overlay } from './overlay'
import type { Palette } from './palette'

type BaseMap = NonNullable<SessionView['base_map']>

interface Base {
  draw: (palette: Palette) => Overlay
  attribution: string
  /** Whether something of it is still on its way. */
  isPending: boolean
}

const NO_LAND: Land = {
  areas: { type: 'Feature', properties: {}, geometry: { type: 'MultiPolygon', coordinates: [] } },
  coasts: { type: 'Feature', properties: {}, geometry: { type: 'MultiLineString', coordinates: [] } },
}
const GRID = grid()
/** From near, coastlines of the whole world are only a hint. */
const FADING: ExpressionSpecification = ['interpolate', ['linear'], ['zoom'], 7, 1, 11, 0.4]

export function useBase(): Base {
  const { base_map: named } = useSession().view
  const [shown, setShown] = useState<Land | null>(null)
  useEffect(() => {
    // A map without coastlines is still a map.
    if (!named) void land().then(setShown, () => setShown(NO_LAND))
  }, [named])
  return useMemo(() => (named ? ofTiles(named) : ofLand(shown)), [named, shown])
}

function ofTiles(named: BaseMap): Base {
  return { draw: (palette) => tiles(named, palette), attribution: plainText(named.attribution), isPending: false }
}

function ofLand(shown: Land | null): Base {
  return {
    draw: (palette) => coastlines(shown ?? NO_LAND, palette),
    attribution: texts.coastlines,
    isPending: shown === null,
  }
}

function tiles(named: BaseMap, palette: Palette): Overlay {
  return {
    sources: { base: { type: 'raster', tiles: [named.tiles], tileSize: 256, maxzoom: 19 } },
    layers: [
      { id: 'sea', type: 'background', paint: { 'background-color': palette.sea } },
      { id: 'base', type: 'raster', source: 'base' },
    ],
  }
}

function coastlines({ areas, coasts }: Land, palette: Palette): Overlay {
  return {
    sources: {
      grid: { type: 'geojson', data: GRID },
      land: { type: 'geojson', data: areas },
      coast: { type: 'geojson', data: coasts },
    },
    layers: [
      { id: 'sea', type: 'background', paint: { 'background-color': palette.sea } },
      { id: 'grid', type: 'line', source: 'grid', paint: { 'line-color': palette.grid, 'line-width': 0.75 } },
      { id: 'land', type: 'fill', source: 'land', paint: { 'fill-color': palette.land, 'fill-opacity': FADING } },
      { id: 'coast', type: 'line', source: 'coast', paint: { 'line-color': palette.coast, 'line-width': 0.75 } },
    ],
  }
}

/** Attributions are often HTML, for maps that take it for such; here they are shown as text. */
function plainText(html: string): string {
  return new DOMParser().parseFromString(html, 'text/html').body.textContent
}
