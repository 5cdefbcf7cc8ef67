/** How the data of a version are drawn: rasters, and features of all shapes. */

import type { FilterSpecification } from 'maplibre-gl'

import { inOneWorld, type Bbox } from './bbox'
import { together, type Overlay } from './overlay'
import type { Palette } from './palette'
import { withParameters, type TileSet } from './services'

export interface RasterLook {
  /** What the services are told of the picture: `bidx`, `rescale`, `colormap_name`. */
  parameters: [string, string][]
  /** From 0 to 1. */
  opacity: number
}

export interface FeatureLook {
  /** Null: as the theme has it. */
  colour: string | null
  opacity: number
}

export function rasterOverlay(tileSet: TileSet, look: RasterLook, palette: Palette): Overlay {
  const tiles = withParameters(tileSet.tiles, look.parameters)
  return together(
    ...parts(tileSet, (source, limits) => ({
      sources: { [source]: { type: 'raster', tiles: [tiles], tileSize: tileSet.tileSize, ...limits } },
      layers: [
        {
          id: `${source} raster`,
          type: 'raster',
          source,
          paint: { 'raster-opacity': look.opacity, 'raster-fade-duration': 0 },
        },
      ],
    })),
    frameOverlay(tileSet, palette),
  )
}

/** The outline of the bounds: from afar, all that is seen of data. */
function frameOverlay({ id, frame }: TileSet, palette: Palette): Overlay {
  const source = `${id} frame`
  const paint = { 'line-color': palette.frame, 'line-width': 1, 'line-dasharray': [3, 3] }
  return {
    sources: { [source]: { type: 'geojson', data: frame } },
    layers: [{ id: source, type: 'line', source, paint }],
  }
}

export function featureOverlay(tileSet: TileSet, look: FeatureLook, palette: Palette): Overlay {
  return together(
    ...parts(tileSet, (source, limits) => {
      const layers = tileSet.layers.flatMap((name) => shapes(source, name, look, palette))
      return {
        sources: { [source]: { type: 'vector', tiles: [tileSet.tiles], ...limits } },
        layers,
        picked: layers.map((layer) => layer.id),
      }
    }),
  )
}

interface Limits {
  minzoom: number
  maxzoom: number
  bounds: Bbox
}

/** Data across the antimeridian are drawn in two parts: beyond their bounds no tile is asked for. */
function parts(tileSet: TileSet, drawn: (source: string, limits: Limits) => Overlay): Overlay[] {
  const { id, minzoom, maxzoom } = tileSet
  return inOneWorld(tileSet.bounds).map((bounds, place) => drawn(`${id} ${place}`, { minzoom, maxzoom, bounds }))
}

function shapes(source: string, name: string, look: FeatureLook, palette: Palette): Overlay['layers'] {
  const fill = look.colour ?? palette.feature
  const of = (kind: string, filter: FilterSpecification) => ({
    id: `${source} ${name} ${kind}`,
    source,
    'source-layer': name,
    filter,
  })
  return [
    {
      ...of('areas', ['==', ['geometry-type'], 'Polygon']),
      type: 'fill',
      paint: { 'fill-color': fill, 'fill-opacity': 0.5 * look.opacity },
    },
    {
      ...of('lines', ['!=', ['geometry-type'], 'Point']),
      type: 'line',
      paint: {
        'line-color': look.colour ?? palette['feature-line'],
        'line-width': 1.25,
        'line-opacity': look.opacity,
      },
    },
    {
      ...of('points', ['==', ['geometry-type'], 'Point']),
      type: 'circle',
      paint: {
        'circle-color': fill,
        'circle-radius': 5,
        'circle-opacity': look.opacity,
        'circle-stroke-color': palette.sea,
        'circle-stroke-width': 1.25,
        'circle-stroke-opacity': look.opacity,
      },
    },
  ]
}
