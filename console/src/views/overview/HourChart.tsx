import { useLayoutEffect, useRef, useState } from 'react'

import { overview as texts } from '../../texts/overview'
import { count } from '../../ui/format'
import { clock, told } from './hourTexts'
import { busiest, roundTop, stacked, total, type Hour } from './hours'

const LEFT = 40
const RIGHT = 10
const BELOW = 22
const ABOVE = 6
const LABELLED_PX = 52
const WIDEST_BAR_PX = 30

interface Props {
  hours: Hour[]
  /** The hour that is told in numbers. */
  chosen: number | null
  onChoose: (index: number | null) => void
}

/** Bars of hours. The mouse chooses one by pointing, the keyboard by the arrows. */
export function HourChart({ hours, chosen, onChoose }: Props) {
  const [frame, { width, height: whole }] = useSize()
  const height = Math.max(0, whole - ABOVE - BELOW)
  const slot = Math.max(1, (width - LEFT - RIGHT) / hours.length) // a part that is hidden has no width
  const top = roundTop(Math.max(...hours.map(total)))

  function point(x: number) {
    const index = Math.floor((x - LEFT) / slot)
    onChoose(index >= 0 && index < hours.length ? index : null)
  }

  return (
    <div className="overview-chart" ref={frame}>
      <svg
        width={width}
        height={whole}
        role="img"
        aria-label={summary(hours)}
        onPointerMove={(event) => point(event.clientX - event.currentTarget.getBoundingClientRect().left)}
        onPointerLeave={() => onChoose(null)}
      >
        <g transform={`translate(0 ${ABOVE})`}>
          {[0, top / 2, top].map((value) => (
            <Line key={value} value={value} y={height - (value / top) * height} width={width - RIGHT} />
          ))}
          {hours.map((hour, index) => (
            <g key={hour.start} transform={`translate(${LEFT + index * slot} 0)`}>
              {index === chosen && <rect className="overview-chosen" width={slot} height={height} rx={3} />}
              <Bar hour={hour} slot={slot} height={height} top={top} />
              {index % every(slot) === 0 && (
                <text className="overview-axis" x={slot / 2} y={height + 16} textAnchor="middle">
                  {clock(hour.start)}
                </text>
              )}
            </g>
          ))}
        </g>
      </svg>
      <HourSlider hours={hours} chosen={chosen} onChoose={onChoose} />
    </div>
  )
}

function Line({ value, y, width }: { value: number; y: number; width: number }) {
  return (
    <>
      <line className="overview-grid" x1={LEFT} x2={width} y1={y} y2={y} />
      <text className="overview-axis" x={LEFT - 8} y={y + 4} textAnchor="end">
        {count(value)}
      </text>
    </>
  )
}

interface BarProps {
  hour: Hour
  slot: number
  height: number
  top: number
}

function Bar({ hour, slot, height, top }: BarProps) {
  const wide = Math.min(WIDEST_BAR_PX, slot * 0.66)
  return stacked(hour, top, height).map((part) => (
    <rect
      key={part.end}
      className={`overview-bar ${part.end}`}
      x={(slot - wide) / 2}
      y={part.top}
      width={wide}
      height={part.height}
    />
  ))
}

/** What the bars say to a keyboard and to a screen reader; it is seen only by the focus around the chart. */
function HourSlider({ hours, chosen, onChoose }: Props) {
  const place = chosen ?? hours.length - 1
  return (
    <input
      className="overview-slider"
      type="range"
      min={0}
      max={hours.length - 1}
      value={place}
      aria-label={texts.throughput.choose}
      aria-valuetext={told(hours[place]!)}
      onFocus={() => onChoose(place)}
      onBlur={() => onChoose(null)}
      onChange={(event) => onChoose(Number(event.target.value))}
    />
  )
}

function summary(hours: Hour[]): string {
  const sum = (end: 'completed' | 'failed' | 'cancelled') => hours.reduce((before, hour) => before + hour[end], 0)
  const most = busiest(hours)
  return texts.throughput.summary(sum('completed'), sum('failed'), sum('cancelled'), most && clock(most.start))
}

/** How many bars share a label, so that labels do not touch. */
function every(slot: number): number {
  return [1, 2, 3, 4, 6, 8].find((hours) => hours * slot >= LABELLED_PX) ?? 12
}

/** The room that there is; text in the picture keeps its size whatever that is. */
function useSize() {
  const frame = useRef<HTMLDivElement>(null)
  const [size, setSize] = useState({ width: 640, height: 176 })
  useLayoutEffect(() => {
    const element = frame.current
    if (element === null) return
    const measure = () => setSize({ width: element.clientWidth, height: element.clientHeight })
    const observer = new ResizeObserver(measure)
    measure()
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return [frame, size] as const
}
