/**
 * Questions one after the other in the terminal, before there is a chat. It owns the terminal from `open` to `close`, and
 * restores it however it ends.
 */
import { decodeKittyPrintable, isKeyRelease, matchesKey, ProcessTerminal, TuiMainScreen } from '@earendil-works/pi-tui'
import { fit, wrapText } from '../chat/render/lines.ts'
import { safeLines } from '../chat/render/safe-lines.ts'
import { createTheme } from '../chat/render/theme.ts'
import type { Theme } from '../chat/render/theme.ts'
import { cleanText } from '../chat/state/clean-text.ts'
import { onEndSignals, SIGNAL_CODES } from '../terminal/end-signals.ts'
import type { EntryQuestion } from './text-entry.ts'
import { TextEntry } from './text-entry.ts'
import type { ListQuestion } from './choice-list.ts'
import { ChoiceList } from './choice-list.ts'
import type { ShownQuestion } from './shown-question.ts'
import { PASTE } from '../terminal/typed-text.ts'

/** The person has left: with Esc, or with the exit code of Ctrl+C, of a signal or of a terminal that is gone. */
export class DialogLeft extends Error {
  override readonly name = 'DialogLeft'
  readonly exitCode: number | undefined

  constructor(exitCode: number | undefined) {
    super('the person has left')
    this.exitCode = exitCode
  }
}

/** Lines that a question leaves free below what was answered. */
const MARGIN_ROWS = 2
const [NO_LINE_WRAP, LINE_WRAP] = ['\x1b[?7l', '\x1b[?7h']

export class Dialog implements Disposable {
  readonly #tui = new TuiMainScreen(new ProcessTerminal(), false)
  readonly #theme: Theme
  readonly #listeners = new DisposableStack()
  readonly #exit = new AbortController()
  /** What was said and answered so far. */
  #saidLines: string[] = []
  #question: ShownQuestion | undefined
  #isOpen = false

  constructor(color: boolean) {
    this.#theme = createTheme(color)
    this.#tui.setClearOnShrink(true)
    this.#tui.addChild({ render: (width) => safeLines(fit(this.#render(width), width)), invalidate() {} })
    this.#tui.addInputListener((data) => {
      this.#onInput(data)
      return { consume: true }
    })
  }

  /** Ends `wait` when the person leaves. */
  get signal(): AbortSignal {
    return this.#exit.signal
  }

  open(): void {
    this.#isOpen = true
    this.#listeners.use(onEndSignals((code) => this.#leave(code)))
    const hangUp = () => this.#leave(SIGNAL_CODES.SIGHUP)
    for (const [stream, event] of [
      [process.stdin, 'end'],
      [process.stdin, 'error'],
      [process.stdout, 'error'],
    ] as const) {
      stream.once(event, hangUp)
      this.#listeners.defer(() => stream.off(event, hangUp))
    }
    const restore = () => this.close()
    process.once('exit', restore)
    this.#listeners.defer(() => process.off('exit', restore))
    this.#tui.start()
    this.#tui.terminal.write(NO_LINE_WRAP)
  }

  /** Gives the terminal back. What was said stays on the screen, unless the person has left. Safe to call more than once. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#listeners.dispose()
    this.#question = undefined
    if (this.signal.aborted) this.#saidLines = []
    try {
      this.#tui.renderNow()
    } finally {
      this.#tui.stop()
      this.#tui.terminal.write(LINE_WRAP)
    }
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** Shows a text that stays. */
  say(text: string): void {
    this.#saidLines.push(text)
    this.#draw()
  }

  /** Returns the index of the chosen option; undefined if the person wants to go back. Rejects with `DialogLeft`. */
  choose(list: ListQuestion): Promise<number | undefined> {
    return this.#answerTo((answer) => new ChoiceList(list, this.#theme, answer))
  }

  /** Returns a text that is not empty; undefined if the person wants to go back. Rejects with `DialogLeft`. */
  enter(entry: EntryQuestion): Promise<string | undefined> {
    return this.#answerTo((answer) => new TextEntry(entry, this.#theme, answer))
  }

  /** Shows the text while the work lasts. Rejects with `DialogLeft`, or as the work does. */
  async wait<T>(text: string, work: Promise<T>): Promise<T> {
    const ignore = () => {}
    this.#show({
      render: (width) => wrapText(this.#theme.dim(text), width),
      handleKey: ignore,
      handlePaste: ignore,
    })
    try {
      return await Promise.race([work, this.#whenLeft()])
    } finally {
      this.#show(undefined)
    }
  }

  async #answerTo<T>(create: (answer: (value: T) => void) => ShownQuestion): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>()
    this.#show(create(resolve))
    try {
      return await Promise.race([promise, this.#whenLeft()])
    } finally {
      this.#show(undefined)
    }
  }

  #whenLeft(): Promise<never> {
    const { promise, reject } = Promise.withResolvers<never>()
    const fail = () => reject(this.signal.reason as DialogLeft) // oxlint-disable-line typescript/no-unsafe-type-assertion -- `#leave` has set it
    if (this.signal.aborted) fail()
    else this.signal.addEventListener('abort', fail, { once: true })
    promise.catch(() => {}) // nobody may wait for it any more
    return promise
  }

  #leave(exitCode: number | undefined): void {
    this.#exit.abort(new DialogLeft(exitCode))
  }

  #show(question: ShownQuestion | undefined): void {
    this.#question = question
    this.#draw()
  }

  #draw(): void {
    if (this.#isOpen) this.#tui.requestRender()
  }

  #onInput(data: string): void {
    if (isKeyRelease(data)) return
    const paste = PASTE.exec(data)?.[1]
    const key = decodeKittyPrintable(data) ?? data
    if (paste !== undefined) this.#question?.handlePaste(cleanText(paste))
    else if (matchesKey(key, 'ctrl+c')) this.#leave(SIGNAL_CODES.SIGINT)
    else if (matchesKey(key, 'escape') || matchesKey(key, 'ctrl+d')) this.#leave(undefined)
    else this.#question?.handleKey(key)
    this.#draw()
  }

  #render(width: number): string[] {
    const saidLines = this.#saidLines.flatMap((text) => wrapText(cleanText(text), width))
    if (!this.#question) return saidLines
    const rows = this.#tui.terminal.rows - saidLines.length - MARGIN_ROWS
    return [...saidLines, ...(saidLines.length > 0 ? [''] : []), ...this.#question.render(width, rows)]
  }
}
