/** A long list of which only the rows in sight are in the page. */
import type { Range } from '@tanstack/virtual-core'
import {
  defaultRangeExtractor,
  elementScroll,
  measureElement,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'
import { ErrorBoundary } from './error-boundary.tsx'
import { useHeldRow } from './held-row.ts'

type Props<Row> = {
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  /** Height of a row that was not drawn yet, in pixels. */
  readonly estimate: number
  readonly draw: (row: Row) => ComponentChildren
  readonly label: string
  /** The key of the row to show, when there is one. */
  readonly target?: string | undefined
  /** Begins at the end and stays there while the reader is there. False: rows before the first one move nothing, as then. */
  readonly follows?: boolean
  /** Called when the reader is near the first row, or near the last one. */
  readonly onStart?: (() => void) | undefined
  readonly onEnd?: (() => void) | undefined
  readonly onAtEnd?: ((isAtEnd: boolean) => void) | undefined
  /** Drawn after the last row, inside the scrolled area. */
  readonly after?: ComponentChildren
  readonly role?: 'region' | 'list'
}

/** How near, in rows. */
const NEAR = 5
/** The end counts as reached a line before it. */
const END_PX = 40

export function VirtualRows<Row>(props: Props<Row>) {
  const { rows, keyOf, draw, label, after, target, role = 'list' } = props
  const scroller = useRef<HTMLDivElement>(null)
  const [, redraw] = useReducer((drawCount: number) => drawCount + 1, 0)
  const latest = useRef(props)
  // The end of a conversation goes on moving what somebody has pressed there, unless it is a request.
  const { heldRow, hold } = useHeldRow(scroller, props.follows === undefined ? '.placed' : '[data-request]')
  const follows = props.follows === true && !heldRow
  // Before a list that follows is at its end, or at its target, its first rows are not what somebody reads.
  const hasBegun = useRef(false)
  const isAtEnd = useRef(props.follows === true)
  const offset = useRef(0)
  const options = {
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => props.estimate,
    getItemKey: (index: number) => {
      const row = rows[index]
      return row === undefined ? index : keyOf(row)
    },
    overscan: 6,
    // What has the focus stays in the page, however far somebody scrolls.
    rangeExtractor: rangeWith(newIndexOf(heldRow && latest.current.rows[heldRow.index], props)),
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    measureElement,
    ...(props.follows !== undefined &&
      !heldRow && {
        anchorTo: 'end' as const,
        followOnAppend: follows,
        scrollEndThreshold: END_PX,
      }),
    onChange: (list: Virtualizer<HTMLDivElement, HTMLElement>) => {
      redraw(undefined)
      const top = list.scrollOffset ?? 0
      // Only who scrolls up leaves the end: a window that changes its size, and rows that turn out to be taller, do not.
      const hasStayed = latest.current.follows === true && isAtEnd.current && top >= offset.current
      isAtEnd.current = list.isAtEnd(END_PX) || hasStayed
      offset.current = top
      hasBegun.current ||= props.follows === undefined || list.isAtEnd(END_PX) || isInRange(list, latest.current)
      if (hasBegun.current) notice(list, latest.current, isAtEnd.current)
    },
  }
  latest.current = props
  const [list] = useState(() => new Virtualizer<HTMLDivElement, HTMLElement>(options))
  list.setOptions(options)
  useLayoutEffect(() => list._didMount(), [])
  useLayoutEffect(() => list._willUpdate())
  useLayoutEffect(() => forgetHeights(list, rows, keyOf))
  useLayoutEffect(hold)
  useLayoutEffect(() => {
    if (follows) list.scrollToEnd()
  }, [rows.length > 0])
  useLayoutEffect(() => {
    const index = target === undefined ? -1 : rows.findIndex((row) => keyOf(row) === target)
    if (index === -1) return
    isAtEnd.current = false
    list.scrollToIndex(index, { align: 'start' })
  }, [target])
  // What is drawn after the rows grows without a change of the rows.
  useLayoutEffect(() => {
    if (follows && isAtEnd.current) scroller.current?.scrollTo(0, scroller.current.scrollHeight)
  })
  return (
    <div class="scroller" ref={scroller} tabIndex={0} role={role} aria-label={label}>
      <Space height={list.getTotalSize()}>
        {list.getVirtualItems().map(({ key, index, start }) => {
          const row = rows[index]
          return (
            <PlacedRow key={key} index={index} start={start} measure={list.measureElement} isRow={role === 'list'}>
              {row !== undefined && draw(row)}
            </PlacedRow>
          )
        })}
      </Space>
      {after}
    </div>
  )
}

const newIndexOf = <Row,>(row: Row | undefined, { rows, keyOf }: Props<Row>): number =>
  row === undefined ? -1 : rows.findIndex((other) => keyOf(other) === keyOf(row))

/** Returns what chooses the rows to draw: those in sight, and this one. */
const rangeWith = (index: number) => (range: Range) => {
  const indexes = defaultRangeExtractor(range)
  return index === -1 || indexes.includes(index) ? indexes : [...indexes, index]
}

/** Returns true if the row to show is one of those that are drawn. */
function isInRange<Row>(
  { range }: Virtualizer<HTMLDivElement, HTMLElement>,
  { rows, keyOf, target }: Props<Row>,
): boolean {
  const index = target === undefined ? -1 : rows.findIndex((row) => keyOf(row) === target)
  return range !== null && range.startIndex <= index && index <= range.endIndex
}

/** The number of heights beyond those of all rows from which on those of former rows are looked for. */
const SPARE_HEIGHTS = 1000

/** Forgets the heights of rows that are gone: the list keeps those of all rows that it has ever shown. */
function forgetHeights<Row>(
  { itemSizeCache: heights }: Virtualizer<HTMLDivElement, HTMLElement>,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
): void {
  if (heights.size < rows.length + SPARE_HEIGHTS) return
  const keys = new Set<unknown>(rows.map(keyOf))
  for (const key of heights.keys()) if (!keys.has(key)) heights.delete(key)
}

function notice<Row>(
  list: Virtualizer<HTMLDivElement, HTMLElement>,
  { rows, onStart, onEnd, onAtEnd }: Props<Row>,
  isAtEnd: boolean,
): void {
  const { range } = list
  onAtEnd?.(isAtEnd)
  if (!range || rows.length === 0) return
  if (range.startIndex < NEAR) onStart?.()
  if (range.endIndex >= rows.length - NEAR) onEnd?.()
}

function Space({ height, children }: { readonly height: number; readonly children: ComponentChildren }) {
  return (
    <div class="space" role="presentation" style={{ height: `${height}px` }}>
      {children}
    </div>
  )
}

type PlacedProps = {
  readonly index: number
  readonly start: number
  readonly measure: (element: HTMLElement | null) => void
  readonly isRow: boolean
  readonly children: ComponentChildren
}

function PlacedRow({ index, start, measure, isRow, children }: PlacedProps) {
  return (
    <div
      class="placed"
      role={isRow ? 'listitem' : 'presentation'}
      data-index={index}
      ref={measure}
      style={{ transform: `translateY(${start}px)` }}
    >
      <ErrorBoundary>{children}</ErrorBoundary>
    </div>
  )
}
