/** MapLibre, with its worker from our own files. It is a megabyte: only what is loaded on demand imports this. */

import 'maplibre-gl/dist/maplibre-gl.css'
import './map.css'

import { setWorkerUrl } from 'maplibre-gl'
import workerUrl from 'maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url'

setWorkerUrl(workerUrl)

export { Map as MapLibre, ScaleControl } from 'maplibre-gl'
