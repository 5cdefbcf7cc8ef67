import { EdgeLabelRenderer, type EdgeProps } from '@xyflow/react'
import { memo } from 'react'

import type { WayEdge } from './picture'

/** One edge, where the layout has put it; dashed where its target does not wait for it. */
export const WayLine = memo(function WayLine({ data }: EdgeProps<WayEdge>) {
  if (!data) return null
  const { placed, way } = data
  const { end, label } = placed
  return (
    <>
      <g className={`graph-way ${way} ${placed.isOptional ? 'optional' : ''}`} data-way={placed.id}>
        <path d={placed.path} />
        <polygon points={`${end.x},${end.y} ${end.x - 4},${end.y - 8} ${end.x + 4},${end.y - 8}`} />
      </g>
      {label && (
        <EdgeLabelRenderer>
          <div
            className={`graph-way-label ${way}`}
            style={{ transform: `translate(-50%, -50%) translate(${label.x}px, ${label.y}px)` }}
            title={placed.condition ?? undefined}
          >
            {label.text}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  )
})
