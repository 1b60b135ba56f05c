/** Keeps what has the focus in a list where it is on the screen: a person is about to press it. */
import type { RefObject } from 'preact'

type HeldRow = {
  readonly focusedElement: HTMLElement
  /** What is held in its place: the row, or a part of it. */
  readonly card: Element
  /** The place of the row in the list as it was drawn. */
  readonly index: number
  readonly top: number
}

/** Returns the row that has the focus, if that is inside of `what`, and what holds it when the list has been drawn again. */
export function useHeldRow(list: RefObject<HTMLElement | null>, what: string) {
  const heldRow = heldRowIn(list.current, what)
  return { heldRow, hold: () => holdRow(list.current, heldRow) }
}

function heldRowIn(list: HTMLElement | null, what: string): HeldRow | undefined {
  const focusedElement = document.activeElement
  if (!(focusedElement instanceof HTMLElement) || !list?.contains(focusedElement)) return undefined
  const card = focusedElement.closest(what)
  const row = card?.closest<HTMLElement>('.placed')
  return card && row
    ? { focusedElement, card, index: Number(row.dataset['index']), top: card.getBoundingClientRect().top }
    : undefined
}

/** Scrolls the list so that what is held is where it was, and gives it the focus back. */
function holdRow(list: HTMLElement | null, heldRow: HeldRow | undefined): void {
  if (!list || !heldRow || !list.contains(heldRow.focusedElement)) return
  const { focusedElement, card, top } = heldRow
  // A browser takes it from an element that moves within the page.
  if (document.activeElement !== focusedElement) focusedElement.focus({ preventScroll: true })
  const edges = list.getBoundingClientRect()
  if (top >= edges.top && top < edges.bottom) list.scrollTop += card.getBoundingClientRect().top - top
}
