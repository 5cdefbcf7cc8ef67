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
  answered: (status: number) => `The server answered ${status}.`,
  counts: (shown: number, total: number, merged: number, hidden: number) => {
    const others = [
      merged > 0 && (merged === 1 ? '1 is merged into a shape' : `${merged.toLocaleString('en')} are merged into shapes`),
      hidden > 0 && `${hidden.toLocaleString('en')} ${hidden === 1 ? 'is' : 'are'} not shown`,
    ].filter(Boolean)
    const [one, two] = [shown.toLocaleString('en'), total.toLocaleString('en')]
    return `${one} of ${two} features in view are shown individually; ${others.join(', ')}. Zoom in to see more.`
  },
  uncounted: 'Only some of the features in view are shown. Zoom in to see more.',
  merged: (count: number) => {
    const features = count === 0 ? 'Some features are' : count === 1 ? '1 feature is' : `${count.toLocaleString('en')} features are`
    return `${features} merged here. Zoom in to see more.`
  },
  fault: (message: string) => `The map is not complete: ${message}`,
  foreign: (address: string) => `This is no address of the services: ${address}`,
  twoFingers: 'Use two fingers to move the map.',
  sideLabel: (label: string, side: string) => `${label}: ${side}`,
  divider: (left: string, right: string) => `Divider between ${left} and ${right}`,
  dividerAt: (percent: number, left: string, right: string) => `${percent} % ${left}, ${100 - percent} % ${right}`,
}
