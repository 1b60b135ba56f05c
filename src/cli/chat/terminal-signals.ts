/** What the terminal says to a person who looks elsewhere: its title, and a bell or a notification. */
import { timerMs } from '../../lib/bounded-wait.ts'
import type { ChatSettings } from '../settings/chat-settings.ts'
import type { ChatState } from './state/chat-state.ts'
import { isBusy } from './state/chat-state.ts'
import { cleanLine } from './state/clean-text.ts'

type SignalOptions = {
  readonly settings: ChatSettings
  readonly write: (sequence: string) => void
  /** A person who has pressed no key for this time, in milliseconds, is not there. */
  readonly absentAfterMs?: number
}

const ABSENT_AFTER_MS = 10_000
const MAX_TITLE_CHARS = 80
/** The terminal keeps its title on a stack meanwhile. */
const [KEEP_TITLE, OLD_TITLE] = ['\x1b[22;0t', '\x1b[23;0t']

export class TerminalSignals {
  readonly #options: SignalOptions
  readonly #absentAfterMs: number
  readonly #hasTitle: boolean
  #title: string | undefined
  #reason: string | undefined
  #lastKeyAt = performance.now()
  #timer: NodeJS.Timeout | undefined

  constructor(options: SignalOptions) {
    this.#options = options
    this.#hasTitle = options.settings.terminal_title ?? true
    this.#absentAfterMs = options.absentAfterMs ?? ABSENT_AFTER_MS
  }

  start(): void {
    if (this.#hasTitle) this.#options.write(KEEP_TITLE)
  }

  stop(): void {
    clearTimeout(this.#timer)
    if (this.#hasTitle) this.#options.write(OLD_TITLE)
    this.#title = undefined
  }

  onKey(): void {
    this.#lastKeyAt = performance.now()
  }

  update(state: ChatState): void {
    this.#showTitle(state)
    const reason = reasonOf(state)
    if (reason === this.#reason) return
    this.#reason = reason
    clearTimeout(this.#timer)
    if (reason === undefined || this.#options.settings.notify === 'off') return
    const beganAt = performance.now()
    const callUnlessThere = () => {
      if (this.#lastKeyAt <= beganAt) this.#call(`agent-server ${reason}: ${state.title}`)
    }
    const wait = timerMs(Math.max(0, this.#lastKeyAt + this.#absentAfterMs - beganAt))
    this.#timer = setTimeout(callUnlessThere, wait).unref()
  }

  #showTitle(state: ChatState): void {
    const mark = state.status.startsWith('waiting_') ? '? ' : state.status === 'running' ? '* ' : ''
    const title = mark + boundText(state.title)
    if (!this.#hasTitle || title === this.#title) return
    this.#title = title
    this.#options.write(`\x1b]0;${title}\x07`)
  }

  #call(reason: string): void {
    const { settings, write } = this.#options
    write(settings.notify === 'osc9' ? `\x1b]9;${boundText(reason)}\x07` : '\x07')
  }
}

/** Undefined while the agent works, and before the first run. */
function reasonOf(state: ChatState): string | undefined {
  if (state.requests.length > 0) return 'waits for you'
  return isBusy(state) || state.lastRunMs === undefined ? undefined : 'has finished'
}

const boundText = (text: string): string => cleanLine(text.slice(0, MAX_TITLE_CHARS))
