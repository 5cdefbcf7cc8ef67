/** How the data of a version are drawn: rasters, and features of all shapes. */

import type { ExpressionSpecification, FilterSpecification } from 'maplibre-gl'

import { inOneWorld, type Bbox } from './bbox'
import { counted, MERGED_COUNT } from './counts'
import { together, type Overlay } from './overlay'
import type { Palette } from './palette'
import { withParameters, type TileSet } from './services'

const IS_AREA: ExpressionSpecification = ['==', ['geometry-type'], 'Polygon']
const IS_LINE: ExpressionSpecification = ['==', ['geometry-type'], 'LineString']
const IS_POINT: ExpressionSpecification = ['==', ['geometry-type'], 'Point']
const IS_MERGED: ExpressionSpecification = ['has', MERGED_COUNT]
const IS_ITSELF: ExpressionSpecification = ['!', IS_MERGED]

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
        sources: { [source]: { type: 'vector', tiles: [counted(tileSet.tiles)], ...limits } },
        layers,
        picked: layers.map((layer) => layer.id),
        counted: tileSet,
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

/** Merged shapes are pixels: they have no outline, and look like a feature of which little more is seen. */
function shapes(source: string, name: string, look: FeatureLook, palette: Palette): Overlay['layers'] {
  const fill = look.colour ?? palette.feature
  const line = look.colour ?? palette['feature-line']
  const of = (kind: string, ...filter: ExpressionSpecification[]) => ({
    id: `${source} ${name} ${kind}`,
    source,
    'source-layer': name,
    filter: ['all', ...filter] as FilterSpecification,
  })
  return [
    {
      ...of('areas', IS_AREA, IS_ITSELF),
      type: 'fill',
      paint: { 'fill-color': fill, 'fill-opacity': 0.5 * look.opacity },
    },
    {
      ...of('merged areas', IS_AREA, IS_MERGED),
      type: 'fill',
      paint: { 'fill-color': line, 'fill-opacity': look.opacity },
    },
    {
      ...of('lines', ['any', IS_LINE, ['all', IS_AREA, IS_ITSELF]]),
      type: 'line',
      paint: { 'line-color': line, 'line-width': 1.25, 'line-opacity': look.opacity },
    },
    {
      ...of('merged points', IS_POINT, IS_MERGED),
      type: 'circle',
      paint: { 'circle-color': fill, 'circle-radius': 1, 'circle-opacity': look.opacity },
    },
    {
      ...of('points', IS_POINT, IS_ITSELF),
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
