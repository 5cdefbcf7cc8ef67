import type { Map } from 'maplibre-gl'

import { map as texts } from '../texts/map'

interface Props {
  map: Map | null
  /** Null where there is no extent to go to. */
  onExtent: (() => void) | null
}

/** The buttons of a map. */
export function MapControls({ map, onExtent }: Props) {
  return (
    <div className="map-controls" role="group" aria-label={texts.controls}>
      <Control name={texts.zoomIn} path="M8 3v10M3 8h10" onClick={() => map?.zoomIn()} />
      <Control name={texts.zoomOut} path="M3 8h10" onClick={() => map?.zoomOut()} />
      {onExtent && (
        <Control name={texts.zoomToExtent} path="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" onClick={onExtent} />
      )}
    </div>
  )
}

function Control({ name, path, onClick }: { name: string; path: string; onClick: () => void }) {
  return (
    <button type="button" aria-label={name} title={name} onClick={onClick}>
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <path d={path} fill="none" stroke="currentColor" strokeWidth="1.75" />
      </svg>
    </button>
  )
}
