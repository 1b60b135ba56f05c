/** Whether a key is pressed twice within two seconds. */

const TWICE_MS = 2000

export class PressedTwice {
  #at = 0

  /** Call it with each press. A third one begins again. */
  press(): boolean {
    const now = Date.now()
    const isTwice = now - this.#at < TWICE_MS
    this.#at = isTwice ? 0 : now
    return isTwice
  }
}
