/** The keyboard: single keys while nothing is typed, and Ctrl+K everywhere. */
import { signal } from '@preact/signals'
import { forPeople } from './live.ts'
import { singleKeys } from './preferences.ts'
import { route, show } from './route.ts'

export const dialog = signal<'palette' | 'help' | undefined>(undefined)

const PLACES: Readonly<Record<string, readonly string[]>> = { i: [], c: ['conversations'], n: ['new'], s: ['server'] }

/** How long a second key may take after `g`, milliseconds. */
const CHORD_MS = 1500

export function listenToKeys(): () => void {
  let chordEnds = 0
  const onKey = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
      event.preventDefault()
      dialog.value = dialog.value === 'palette' ? undefined : 'palette'
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || dialog.value !== undefined) return
    if (event.key === 'Escape') return closeMenu() || isOfField(event.target) ? undefined : press('[data-escape]')
    if (singleKeys.value === 'off' || isTyping(event.target)) return
    const isChord = event.timeStamp < chordEnds
    chordEnds = event.key === 'g' ? event.timeStamp + CHORD_MS : 0
    const place = isChord ? PLACES[event.key] : undefined
    if (place) show(...place)
    else if (singleKey(event)) event.preventDefault()
  }
  addEventListener('keydown', onKey)
  return () => removeEventListener('keydown', onKey)
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button'].includes(target.type)
  return target.isContentEditable || target.matches('textarea, select')
}

/** Escape empties a search, closes a list, and is meant for no agent where somebody writes something else than a message. */
const isOfField = (target: EventTarget | null): boolean =>
  isTyping(target) && target instanceof HTMLElement && target.closest('.composer') === null

/** Returns whether there was one. Escape closes it, and is not meant for the agent. */
function closeMenu(): boolean {
  const menu = document.querySelector<HTMLDetailsElement>('details.more[open]')
  if (!menu) return false
  menu.open = false
  menu.querySelector('summary')?.focus()
  return true
}

function singleKey({ key, repeat }: KeyboardEvent): boolean {
  if (key === '?') dialog.value = 'help'
  else if (key === '/') focusSearch()
  else if (key === 'n') nextRequest()
  else return !repeat && decide(key)
  return true
}

/** The screen with the search may need some frames until it is there. */
const MOST_FRAMES = 120

function focusSearch(): void {
  if (route.value.path[0] !== 'conversations') show('conversations')
  const look = (framesLeft: number) => {
    const field = document.querySelector<HTMLElement>('[data-search]')
    if (field) field.focus()
    else if (framesLeft > 0) requestAnimationFrame(() => look(framesLeft - 1))
  }
  requestAnimationFrame(() => look(MOST_FRAMES))
}

/** Keys decide only the card that has the focus, and only if the whole card is in sight. */
function decide(key: string): boolean {
  const card = document.activeElement?.closest<HTMLElement>('[data-request]')
  const control = card?.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)
  if (!card || !control || !isInSight(card)) return false
  control.click()
  // Enter then sends the answer, if it is the whole one.
  const isWhole = card.querySelectorAll('fieldset').length === 1
  if (control instanceof HTMLInputElement && isWhole) control.focus({ preventScroll: true })
  return true
}

/** How far apart the points are that are looked at, pixels: less than a line of text. */
const STEP_PX = 12

/** Returns true if nothing covers the card, and no edge of the window or of a list cuts it. */
function isInSight(card: HTMLElement): boolean {
  const { left, right, top, bottom } = card.getBoundingClientRect()
  const isSeen = (x: number, y: number) => card.contains(document.elementFromPoint(x, y))
  const isLineSeen = (y: number) => [left + 1, (left + right) / 2, right - 1].every((x) => isSeen(x, y))
  // The corners are round.
  for (let y = top + STEP_PX; y < bottom - STEP_PX; y += STEP_PX) if (!isLineSeen(y)) return false
  return [top + 1, bottom - 1].every((y) => isSeen((left + right) / 2, y))
}

function nextRequest(): void {
  const cards = [...document.querySelectorAll<HTMLElement>('[data-request]')]
  const current = cards.findIndex((card) => card.contains(document.activeElement))
  const next = cards[current + 1] ?? cards[0]
  if (next) {
    next.focus()
    next.scrollIntoView({ block: 'nearest' })
    return
  }
  const waiting = forPeople.value?.[0]
  if (waiting) show()
}

function press(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.click()
}
