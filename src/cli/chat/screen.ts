/** The terminal: the only file that writes to it and reads keys from it, and restores its modes at the end. */
import type { Component } from '@earendil-works/pi-tui'
import {
  decodeKittyPrintable,
  Editor,
  isKeyRelease,
  matchesKey,
  ProcessTerminal,
  setCapabilities,
  TuiMainScreen,
} from '@earendil-works/pi-tui'
import type { ChatSettings } from '../settings/chat-settings.ts'
import type { Completion } from './input/completion.ts'
import type { ScreenHandlers } from './input/prompt-keys.ts'
import { handleKey, removesWords } from './input/prompt-keys.ts'
import type { QueuedMessages } from './input/queued-messages.ts'
import { HistorySearch } from './input/history-search.ts'
import { cleanText } from './state/clean-text.ts'
import type { ChatState } from './state/chat-state.ts'
import { EMPTY_STATE, isBusy } from './state/chat-state.ts'
import { fit, wrapText } from './render/lines.ts'
import { safeLines } from './render/safe-lines.ts'
import type { Panel } from './render/panel.ts'
import { ReadyPanel } from './render/ready-panel.ts'
import { NOTHING_DRAWN, Redraws } from './render/redraws.ts'
import type { Facts } from './render/status-line.ts'
import { activityLine, statusLine } from './render/status-line.ts'
import type { Theme } from './render/theme.ts'
import { editorTheme } from './render/theme.ts'
import { Transcript } from './render/transcript.ts'
import { suspendProcess } from './suspend-process.ts'
import { TerminalSignals } from './terminal-signals.ts'
import { PASTE } from '../terminal/typed-text.ts'

type ScreenOptions = {
  readonly theme: Theme
  readonly facts: (state: ChatState) => Facts
  readonly handlers: ScreenHandlers
  readonly settings: ChatSettings
  readonly queued: QueuedMessages
}

/** Lines of the prompt, the status and the activity, which a panel leaves free. */
const ROWS_BELOW_PANEL = 6
/** Characters that the prompt shows as such: a longer text becomes a paste, of which it shows a mark. */
const MAX_SHOWN_CHARS = 1000
/**
 * A terminal that wraps begins a new line where a character is wider than the library knows, and draws each later line
 * in the wrong place.
 */
const [NO_LINE_WRAP, LINE_WRAP] = ['\x1b[?7l', '\x1b[?7h']
const ESCAPE = '\x1b'
/** The prompts of earlier chats and of this one. */
const MAX_PROMPTS = 200

export class Screen {
  readonly #tui = new TuiMainScreen(new ProcessTerminal(), true)
  readonly #editor: Editor
  readonly #transcript: Transcript
  readonly #options: ScreenOptions
  isLent = false
  readonly #signals: TerminalSignals
  readonly #keys: Parameters<typeof handleKey>[2]
  #state: ChatState = EMPTY_STATE
  readonly #panels = new ReadyPanel(() => this.redraw())
  #isStarted = false
  #closing: string | undefined
  readonly #redraws = new Redraws(() => this.redraw())
  #completion: Completion | undefined
  /** Messages that can be sent again, the oldest first. */
  readonly #prompts: string[] = []
  #search: HistorySearch | undefined
  /** The prompt before it was sent, with the spaces around it. */
  #typed = ''

  constructor(options: ScreenOptions) {
    this.#options = options
    // Links are shown with their address, and images by their name: both would be sequences that others choose.
    setCapabilities({ images: null, trueColor: false, hyperlinks: false })
    this.#signals = new TerminalSignals({ ...options, write: (sequence) => this.#tui.terminal.write(sequence) })
    this.#transcript = new Transcript({
      theme: options.theme,
      topLine: () => this.#tui.captureRenderState().previousViewportTop,
      redrawAfter: (ms) => this.#redraws.after(ms),
    })
    this.#editor = new Editor(this.#tui, editorTheme(options.theme), { autocompleteMaxVisible: 8 })
    this.#editor.onChange = (text) => {
      this.#completion?.cancel()
      this.#typed = text === '' ? this.#typed : text
    }
    this.#keys = {
      ...options.handlers,
      onQueue: () => this.#queue(),
      onSearch: () => (this.#search = new HistorySearch(this.#prompts, options.theme)),
      onClear: () => (this.draft = ''),
      onExpand: () => this.#transcript.toggleExpanded(),
      onDrawAgain: () => this.#tui.requestRender(true),
      onSuspend: () => this.#suspend(),
    }
    this.#editor.onSubmit = (text) => options.handlers.onSubmit(text, this.#typed)
    this.#tui.addChild(this.#transcript)
    this.#tui.addChild(view((width) => this.#panelLines(width)))
    this.#tui.addChild(view((width) => (this.#closing === undefined ? this.#editor.render(width) : [])))
    this.#tui.addChild(view((width) => this.#lastLines(width)))
    this.#tui.setFocus(this.#editor)
    this.#tui.setClearOnShrink(false)
    this.#tui.addInputListener((data) => this.#onInput(data))
  }

  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#tui.start()
    this.#tui.terminal.write(NO_LINE_WRAP)
    this.#signals.start()
  }

  /** Leaves the conversation on the screen, and the cursor below it. Safe to call more than once, and at any time. */
  stop(closing?: string): void {
    this.#redraws.stop()
    if (!this.#isStarted) return
    this.#isStarted = false
    try {
      if (closing !== undefined) this.#drawEnd(closing)
    } finally {
      this.#tui.stop()
      this.#signals.stop()
      this.#tui.terminal.write(LINE_WRAP)
    }
  }

  show(state: ChatState, panel: Panel | undefined): void {
    this.#panels.show(panel)
    this.#state = state
    this.#transcript.show(state.items)
    this.#redraws.tick(isBusy(state))
    if (this.#isStarted) this.#signals.update(state)
    this.redraw()
  }

  redraw(): void {
    if (this.#isStarted) this.#tui.requestRender()
  }

  complete(completion: Completion): void {
    this.#completion = completion
    this.#editor.setAutocompleteProvider(completion)
  }

  remember(text: string): void {
    this.#editor.addToHistory(text)
    this.#prompts.push(text)
    if (this.#prompts.length > MAX_PROMPTS) this.#prompts.shift()
  }

  get draft(): string {
    return this.#editor.getExpandedText()
  }

  /** A text that was shown before, to be changed. */
  set draft(text: string) {
    this.#editor.setText(text)
    this.redraw()
  }

  /** The same for a text of any length. */
  restore(text: string): void {
    const isShort = text.length <= MAX_SHOWN_CHARS
    this.#editor.setText(isShort ? text : '')
    if (!isShort) this.#editor.handleInput(`\x1b[200~${text}\x1b[201~`)
    this.redraw()
  }

  #onInput(data: string): { consume?: boolean; data?: string } | undefined {
    if (isKeyRelease(data)) return undefined
    this.#signals.onKey()
    const paste = PASTE.exec(data)?.[1]
    if (this.#search && paste !== undefined) this.#search.type(paste)
    if (this.#search && paste !== undefined) return { consume: did(() => this.redraw()) }
    if (paste !== undefined) return { data: `\x1b[200~${cleanText(paste.replaceAll(/\r\n?/g, '\n'))}\x1b[201~` }
    return this.#onKey(decodeKittyPrintable(data) ?? data) ? { consume: true } : undefined
  }

  /** Returns whether the key is used up. */
  #onKey(key: string): boolean {
    const { handlers } = this.#options
    if (this.#search && !this.#searchOn(this.#search, key)) return true
    const isEmpty = this.#editor.getText() === ''
    if (handleKey(key, isEmpty, this.#keys)) return did(() => this.redraw())
    // Two that arrive together, as over a slow connection.
    if (key === '\x1b\x1b') return this.#onKey('\x1b') && this.#onKey('\x1b')
    // The editor would keep a list for words that are gone, and Enter would choose from it.
    if (removesWords(key) && this.#editor.isShowingAutocomplete()) this.#editor.handleInput(ESCAPE)
    if (matchesKey(key, 'escape') && !this.#editor.isShowingAutocomplete()) return did(handlers.onEscape)
    if (!this.#isReady() || this.#panels.panel?.handleKey(key) !== true)
      return matchesKey(key, 'up') && isEmpty && handlers.onUnqueue()
    this.redraw()
    return true
  }

  /** Returns true if the key must be handled further. */
  #searchOn(search: HistorySearch, key: string): boolean {
    const step = search.handleKey(key)
    this.redraw()
    if (step === 'search') return false
    this.#search = undefined
    if (step !== 'leave' && search.match !== undefined) this.restore(search.match)
    // A prompt must not answer a panel, such as the edited input of a call.
    if (step === 'send' && this.#panels.panel === undefined) this.#editor.handleInput('\r')
    return step === 'pass'
  }

  /** Returns true if keys answer the panel. */
  #isReady(): boolean {
    return this.#panels.isReady() && this.#editor.getText() === ''
  }

  /** Another program has the terminal until the work has ended. */
  async lend<T>(work: () => Promise<T>): Promise<T> {
    this.isLent = true
    this.stop()
    try {
      return await work()
    } finally {
      this.isLent = false
      this.#resume()
    }
  }

  /** Puts the text into the clipboard, if the terminal can do that. */
  copy(text: string): void {
    this.#tui.terminal.write(`\x1b]52;c;${Buffer.from(text).toString('base64')}\x07`)
  }

  /** Called after a change of the theme. */
  drawAgain(): void {
    this.#transcript.invalidate()
    this.#tui.requestRender(true)
  }

  #queue(): void {
    const [text, typedText] = [this.#editor.getExpandedText(), this.#typed]
    this.draft = ''
    this.#options.handlers.onQueue(text.trim(), typedText)
  }

  #suspend(): void {
    if (process.platform === 'win32') return
    this.stop()
    suspendProcess(() => this.#resume())
  }

  /** What was written in the meantime stays above. */
  #resume(): void {
    if (!this.#isStarted) this.#tui.restoreRenderState(NOTHING_DRAWN)
    this.start()
    // A frame that was requested before the stop is never drawn, and would prevent any other.
    this.#tui.renderNow()
    this.#redraws.tick(isBusy(this.#state))
  }

  /** The prompt and the panel are removed: what stays is the conversation. */
  #drawEnd(closing: string): void {
    this.#panels.show(undefined)
    this.#closing = closing
    this.#tui.renderNow()
  }

  #panelLines(width: number): string[] {
    const { theme } = this.#options
    const activity = activityLine(this.#state, { width, theme, now: Date.now() })
    const search = this.#search?.lines(width, this.#panels.panel === undefined) ?? []
    const queuedLines = this.#options.queued.lines(width, theme, this.#state)
    const rows = this.#tui.terminal.rows - ROWS_BELOW_PANEL - search.length - queuedLines.length
    const lines = this.#panels.render(width, rows, this.#isReady())
    return ['', ...lines, ...(activity === '' ? [] : [activity]), ...queuedLines, ...search]
  }

  #lastLines(width: number): string[] {
    const { theme, facts } = this.#options
    if (this.#closing !== undefined) return [...wrapText(this.#closing, width), '']
    return [statusLine(this.#state, facts(this.#state), { width, theme, now: Date.now() })]
  }
}

const view = (render: (width: number) => string[]): Component => ({
  render: (width) => safeLines(fit(render(width), width)),
  invalidate() {},
})

function did(work: () => void): true {
  work()
  return true
}
