/** The map with what changes its look: one side or two, opacity, bands, values, colours. */

import { useMemo, useState, type Ref } from 'react'

import type { DataType, MapHandle, Place } from '../../map'
import { review as texts } from '../../texts/review'
import { useAddress } from '../../ui/address'
import { Field } from '../../ui/Field'
import { Card } from '../../ui/parts'
import type { RasterTold } from './documents'
import { lookFrom, lookWritten, pictureParameters, usualLook, type Look } from './look'
import type { MapView } from './mapView'
import { RasterControls } from './RasterControls'
import { ReviewMap } from './ReviewMap'

interface Props {
  dataType: DataType
  here: Place
  /** Null where nothing is in service to compare with. */
  there: Place | null
  /** Of a raster. */
  told: RasterTold | undefined
  view: MapView
  handle: Ref<MapHandle>
}

export function MapCard({ dataType, here, there, told, view, handle }: Props) {
  const [colour, setColour] = useState<string | null>(null)
  const [look, setLook] = useLook(told)
  const parameters = useMemo(() => (told && look ? pictureParameters(told, look) : null), [told, look])
  const painting = useMemo(
    () => ({ opacity: view.opacity / 100, colour, parameters }),
    [view.opacity, colour, parameters],
  )
  return (
    <Card title={texts.map.title} actions={there && <ModeChoice view={view} />} flush className="review-map">
      <ReviewMap
        dataType={dataType}
        here={here}
        there={view.isSwiping ? there : null}
        painting={painting}
        handle={handle}
      />
      <div className="review-map-controls">
        <Field label={texts.look.opacity(view.opacity)} className="review-opacity">
          {(control) => (
            <input
              {...control}
              type="range"
              min={0}
              max={100}
              step={5}
              value={view.opacity}
              onChange={(event) => view.setOpacity(Number(event.target.value))}
            />
          )}
        </Field>
        {told && look && <RasterControls told={told} look={look} onLook={setLook} />}
        {dataType === 'vector' && <FeatureColour colour={colour} onColour={setColour} />}
      </div>
    </Card>
  )
}

/** How the raster is looked at, as the address says it. */
function useLook(told: RasterTold | undefined): [Look | null, (look: Look) => void] {
  const [parameters, change] = useAddress()
  const look = useMemo(() => (told ? lookFrom(parameters, told) : null), [parameters, told])
  const setLook = (next: Look) => {
    if (told) change(lookWritten(next, usualLook(told)))
  }
  return [look, setLook]
}

function ModeChoice({ view }: { view: MapView }) {
  return (
    <div className="review-modes" role="group" aria-label={texts.map.mode}>
      <button type="button" aria-pressed={!view.isSwiping} onClick={() => view.setSwiping(false)}>
        {texts.map.single}
      </button>
      <button type="button" aria-pressed={view.isSwiping} onClick={() => view.setSwiping(true)}>
        {texts.map.swipe}
      </button>
    </div>
  )
}

interface ColourProps {
  colour: string | null
  onColour: (colour: string) => void
}

function FeatureColour({ colour, onColour }: ColourProps) {
  return (
    <>
      <Field label={texts.look.featureColour}>
        {(control) => (
          <input
            {...control}
            type="color"
            value={colour ?? FEATURE_COLOUR}
            onChange={(event) => onColour(event.target.value)}
          />
        )}
      </Field>
      <p className="soft review-hint">{texts.map.pickHint}</p>
    </>
  )
}

/** What the map of the theme begins with, for the field that must show one. */
const FEATURE_COLOUR = '#1f6fb2'
