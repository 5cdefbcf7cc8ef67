/** MapLibre, with its worker from our own files. It is a megabyte: only what is loaded on demand imports this. */

import 'maplibre-gl/dist/maplibre-gl.css'
import './map.css'

import { addProtocol, setWorkerUrl } from 'maplibre-gl'
import workerUrl from 'maplibre-gl/dist/maplibre-gl-worker.mjs?worker&url'

import { fetchCounted, PROTOCOL } from './counts'

setWorkerUrl(workerUrl)
addProtocol(PROTOCOL, ({ url }, { signal }) => fetchCounted(url, signal))

export { Map as MapLibre, ScaleControl } from 'maplibre-gl'
