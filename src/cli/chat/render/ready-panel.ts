/** The panel above the prompt, and when its keys answer: a key that was pressed before it was seen was meant for the prompt. */
import type { Panel } from './panel.ts'

/** Nobody reads and decides faster. */
const READY_AFTER_MS = 250

export class ReadyPanel {
  readonly #onReady: () => void
  #panel: Panel | undefined
  #isNew = false
  /** Undefined until the panel was drawn: that can take longer than a key that was typed before. */
  #readyAt: number | undefined

  constructor(onReady: () => void) {
    this.#onReady = onReady
  }

  get panel(): Panel | undefined {
    return this.#panel
  }

  show(panel: Panel | undefined): void {
    if (panel !== this.#panel) this.#readyAt = undefined
    this.#isNew = panel !== undefined && (this.#isNew || panel !== this.#panel)
    this.#panel = panel
  }

  isReady(): boolean {
    return this.#readyAt !== undefined && Date.now() >= this.#readyAt
  }

  render(width: number, rows: number, isReady: boolean): string[] {
    const panel = this.#panel
    const lines = panel?.render(width, rows, isReady) ?? []
    if (panel && this.#isNew) setImmediate(() => this.#drew(panel))
    this.#isNew = false
    return lines
  }

  /** Called when the frame with the panel was written. */
  #drew(panel: Panel): void {
    if (panel !== this.#panel) return
    this.#readyAt = Date.now() + READY_AFTER_MS
    setTimeout(this.#onReady, READY_AFTER_MS).unref()
  }
}
