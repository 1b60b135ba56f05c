/** All spans of time in one line, from which a person takes a range: with the mouse, or with two sliders. */
import { useMemo, useRef } from 'preact/hooks'
import { texts } from '../state/preferences.ts'
import type { TimeRange, TimeSpan } from '../state/timeline.ts'
import { bucketsOf, endOfSpan, FoldedAxis } from '../state/timeline.ts'
import { moment } from './amounts.ts'

/** Parts of the strip, and steps of its sliders. */
const BUCKETS = 120
/** A shorter way of the mouse is a click, which takes everything. */
const LEAST_PX = 4

type Props = {
  readonly spans: readonly TimeSpan[]
  /** Undefined: everything. */
  readonly range: TimeRange | undefined
  readonly setRange: (range: TimeRange | undefined) => void
}

export function TimeStrip({ spans, range, setRange }: Props) {
  const axis = useMemo(() => new FoldedAxis(spans), [spans])
  const buckets = useMemo(() => bucketsOf(spans, axis, BUCKETS), [spans, axis])
  const drag = useDrag(axis, setRange)
  const from = range ? axis.placeOf(range.from) : 0
  const to = range ? axis.placeOf(range.to) : 1
  return (
    <div class="time-strip">
      <div class="strip" aria-hidden="true" {...drag}>
        {buckets.map(({ kind, share, isFailed }, index) => (
          <span
            key={index}
            class={`bucket bar-of ${isFailed ? 'failed' : (kind ?? 'nothing')}`}
            style={{ height: `${heightOf(share)}%` }}
          />
        ))}
        {range && <span class="chosen" style={{ left: `${100 * from}%`, width: `${100 * (to - from)}%` }} />}
      </div>
      <Ends axis={axis} spans={spans} range={range} setRange={setRange} />
    </div>
  )
}

const heightOf = (share: number) => Math.max(8, 100 * share)

/** The way of the mouse, or of a finger, from one end of a range to the other. */
function useDrag(axis: FoldedAxis, setRange: Props['setRange']) {
  const startX = useRef<number>(undefined)
  const timeAt = ({ clientX, currentTarget }: { readonly clientX: number; readonly currentTarget: HTMLElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect()
    return axis.timeAt((clientX - left) / Math.max(1, width))
  }
  type Move = PointerEvent & { readonly currentTarget: HTMLElement }
  const end = () => void (startX.current = undefined)
  return {
    onPointerDown(event: Move) {
      startX.current = event.clientX
      event.currentTarget.setPointerCapture(event.pointerId)
      setRange(undefined)
    },
    onPointerMove(event: Move) {
      const start = startX.current
      if (start === undefined || Math.abs(event.clientX - start) < LEAST_PX) return
      const { currentTarget } = event
      const times = [timeAt({ clientX: start, currentTarget }), timeAt(event)]
      setRange({ from: Math.min(...times), to: Math.max(...times) })
    },
    onPointerUp: end,
    onPointerCancel: end,
  }
}

function Ends({ axis, spans, range, setRange }: Props & { readonly axis: FoldedAxis }) {
  const { rangeFrom, rangeTo, wholeTime } = texts.value
  const first = axis.timeAt(0)
  const last = Math.max(first, ...spans.map(endOfSpan))
  const { from, to } = range ?? { from: first, to: last }
  const set = (next: TimeRange) => setRange(next.from <= first && next.to >= last ? undefined : next)
  return (
    <div class="bar">
      <Slider
        name={rangeFrom}
        time={from}
        place={axis.placeOf(from)}
        set={(place) => set({ from: Math.min(axis.timeAt(place), to), to })}
      />
      <Slider
        name={rangeTo}
        time={to}
        place={range ? axis.placeOf(to) : 1}
        set={(place) => set({ from, to: place === 1 ? last : Math.max(axis.timeAt(place), from) })}
      />
      <button type="button" disabled={!range} onClick={() => setRange(undefined)}>
        {wholeTime}
      </button>
    </div>
  )
}

type SliderProps = {
  readonly name: string
  readonly time: number
  /** A part of the axis, 0 to 1. */
  readonly place: number
  readonly set: (place: number) => void
}

function Slider({ name, time, place, set }: SliderProps) {
  const text = moment(new Date(time).toISOString())
  return (
    <label class="option">
      {name}
      <input
        type="range"
        min={0}
        max={BUCKETS}
        value={Math.round(place * BUCKETS)}
        aria-valuetext={text}
        onInput={({ currentTarget }) => set(Number(currentTarget.value) / BUCKETS)}
      />
      <span class="quiet number">{text}</span>
    </label>
  )
}
