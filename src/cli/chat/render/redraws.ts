/** Draws the screen again later, or regularly. */

/** How often the clock and the spinner move while a run is active. */
const TICK_MS = 250

/** The state of a screen that something else has written on. */
export const NOTHING_DRAWN = {
  previousLines: [],
  previousWidth: 0,
  previousHeight: 0,
  cursorRow: 0,
  hardwareCursorRow: 0,
  maxLinesRendered: 0,
  previousViewportTop: 0,
}

export class Redraws {
  readonly #redraw: () => void
  #ticks: NodeJS.Timeout | undefined
  #later: NodeJS.Timeout | undefined

  constructor(redraw: () => void) {
    this.#redraw = redraw
  }

  after(ms: number): void {
    this.#later ??= setTimeout(() => {
      this.#later = undefined
      this.#redraw()
    }, ms).unref()
  }

  tick(isRunning: boolean): void {
    if (!isRunning) {
      clearInterval(this.#ticks)
      this.#ticks = undefined
    } else this.#ticks ??= setInterval(this.#redraw, TICK_MS).unref()
  }

  stop(): void {
    this.tick(false)
    clearTimeout(this.#later)
    this.#later = undefined
  }
}
