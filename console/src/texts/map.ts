/** Words of the maps. */

export const map = {
  controls: 'Map',
  extents: 'Map of where the data are',
  zoomIn: 'Zoom in',
  zoomOut: 'Zoom out',
  zoomToExtent: 'Zoom to the extent',
  coastlines: 'Coastlines: Natural Earth',
  noWebGl: 'This browser does not draw maps: WebGL 2 is missing or turned off.',
  broken: 'The map could not be loaded. Load the page again.',
  fault: (message: string) => `The map is not complete: ${message}`,
  foreign: (address: string) => `This is no address of the services: ${address}`,
  twoFingers: 'Use two fingers to move the map.',
  sideLabel: (label: string, side: string) => `${label}: ${side}`,
  divider: (left: string, right: string) => `Divider between ${left} and ${right}`,
  dividerAt: (percent: number, left: string, right: string) => `${percent} % ${left}, ${100 - percent} % ${right}`,
}
