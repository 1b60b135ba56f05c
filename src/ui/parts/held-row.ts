/** Keeps what has the focus in a list where it is on the screen: a person is about to press it. */

export type HeldRow = {
  readonly focusedElement: HTMLElement
  readonly row: HTMLElement
  /** The place of the row in the list as it was drawn. */
  readonly index: number
  readonly top: number
}

/** Returns the row that has the focus, before its list is drawn again. `what` has to be around what has the focus. */
export function heldRowIn(list: HTMLElement | null, what: string): HeldRow | undefined {
  const focusedElement = document.activeElement
  if (!(focusedElement instanceof HTMLElement) || !list?.contains(focusedElement) || !focusedElement.closest(what))
    return undefined
  const row = focusedElement.closest<HTMLElement>('.placed')
  return row
    ? { focusedElement, row, index: Number(row.dataset['index']), top: row.getBoundingClientRect().top }
    : undefined
}

/** Scrolls the list after it was drawn so that the row is where it was, and gives it the focus back. */
export function holdRow(list: HTMLElement | null, held: HeldRow | undefined): void {
  if (!list || !held || !list.contains(held.focusedElement)) return
  // A browser takes it from an element that moves within the page.
  if (document.activeElement !== held.focusedElement) held.focusedElement.focus({ preventScroll: true })
  const { top, bottom } = list.getBoundingClientRect()
  const isInSight = held.top >= top && held.top < bottom
  if (isInSight) list.scrollTop += held.row.getBoundingClientRect().top - held.top
}
