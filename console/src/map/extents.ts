/** Boxes that tell where data are; one that is too small to be seen is a point until one comes nearer. */

import type { ExpressionSpecification } from 'maplibre-gl'
import type { FeatureCollection } from 'geojson'

import { middle, outline, span, type Bbox } from './bbox'
import type { Overlay } from './overlay'
import type { Palette } from './palette'

export interface Extent {
  id: string
  bbox: Bbox
  label: string
}

const SMALLEST_PIXELS = 10
const WORLD_PIXELS = 512
const LAST_ZOOM = 18

/** The same extents as shapes: the largest first, so that small ones lie above. */
export function shapesOf(extents: readonly Extent[]): { boxes: FeatureCollection; points: FeatureCollection } {
  const told = extents
    .map(({ id, bbox, label }) => ({ bbox, properties: { id, label, span: span(bbox) } }))
    .toSorted((one, other) => other.properties.span - one.properties.span)
  return {
    boxes: {
      type: 'FeatureCollection',
      features: told.map(({ bbox, properties }) => ({ ...outline(bbox), properties })),
    },
    points: {
      type: 'FeatureCollection',
      features: told.map(({ bbox, properties }) => ({
        type: 'Feature',
        properties,
        geometry: { type: 'Point', coordinates: middle(bbox) },
      })),
    },
  }
}

export function extentsOverlay(
  { boxes, points }: ReturnType<typeof shapesOf>,
  selected: string | null,
  palette: Palette,
): Overlay {
  const isSelected: ExpressionSpecification = ['==', ['get', 'id'], selected]
  const colour: ExpressionSpecification = ['case', isSelected, palette.selected, palette.feature]
  const line: ExpressionSpecification = ['case', isSelected, palette.selected, palette['feature-line']]
  return {
    sources: { extents: { type: 'geojson', data: boxes }, 'small extents': { type: 'geojson', data: points } },
    picked: ['extents', 'small extents'],
    layers: [
      {
        id: 'extents',
        type: 'fill',
        source: 'extents',
        paint: { 'fill-color': colour, 'fill-opacity': ['case', isSelected, 0.35, 0.12] },
      },
      {
        id: 'outlines',
        type: 'line',
        source: 'extents',
        paint: { 'line-color': line, 'line-width': ['case', isSelected, 2.5, 1] },
      },
      {
        id: 'small extents',
        type: 'circle',
        source: 'small extents',
        paint: {
          'circle-color': colour,
          'circle-radius': whereSmall(['case', isSelected, 7, 5], 0),
          'circle-stroke-color': palette.sea,
          'circle-stroke-width': whereSmall(1.25, 0),
        },
      },
    ],
  }
}

/** One value for extents that are too small at a zoom level, another for those that can be seen. */
function whereSmall(small: ExpressionSpecification | number, seen: number): ExpressionSpecification {
  const at = (zoom: number): ExpressionSpecification => {
    const degrees = (SMALLEST_PIXELS * 360) / (WORLD_PIXELS * 2 ** zoom)
    return ['case', ['<', ['get', 'span'], degrees], small, seen]
  }
  const steps = Array.from({ length: LAST_ZOOM }, (_, place) => place + 1).flatMap((zoom) => [zoom, at(zoom)])
  return ['step', ['zoom'], at(0), ...steps] as ExpressionSpecification
}
