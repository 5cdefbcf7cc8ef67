import { MapFrame, type FrameProps } from './MapFrame'

type TileMapProps = Pick<FrameProps, 'label' | 'drawing' | 'extent' | 'camera' | 'onPick' | 'ref'>

/** One map of the data of one version. */
export function TileMap(props: TileMapProps) {
  return <MapFrame {...props} />
}
