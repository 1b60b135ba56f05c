/** A call to an MCP server while it runs: its time limit, which questions to the user suspend, and its progress. */
import type { Progress } from '@modelcontextprotocol/client'
import type { OutsideRequest, ToolContext } from '../../tools/tool.ts'
import type { ShowText } from '../tools/shown-text.ts'
import { timerMs } from '../../lib/bounded-wait.ts'

/** Progress that is shown of one call, in characters, and lines per second. */
const MAX_PROGRESS_CHARS = 64 * 1024
const MIN_PROGRESS_MS = 100
const MAX_LINE_CHARS = 500

/** Forms that one call may show to the user; each is an event in the log. */
const MAX_FORMS = 20

export type LiveCallContext = Pick<ToolContext, 'toolUseId' | 'signal' | 'openRequest' | 'onOutput'>

export class LiveCall implements AsyncDisposable {
  readonly #context: LiveCallContext
  readonly #show: ShowText
  readonly #abort = new AbortController()
  readonly #onAbort = () => this.#abort.abort(this.#context.signal.reason)
  readonly #over = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #leftMs: number
  #since = 0
  #forms = 0
  /** Settles when the form that is shown now has ended. */
  #form: Promise<unknown> | undefined
  #shownChars = 0
  #shownAt = -Infinity
  #isOver = false
  timedOut = false

  constructor(context: LiveCallContext, timeoutMs: number, show: ShowText) {
    this.#show = show
    this.#context = context
    this.#leftMs = timeoutMs
    context.signal.addEventListener('abort', this.#onAbort, { once: true })
    if (context.signal.aborted) this.#onAbort()
    this.#watch()
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get wasInterrupted(): boolean {
    return this.#context.signal.aborted
  }

  /** Shows a form of the server to the user: one at a time, and not any number. Undefined if it may not be shown. */
  async showForm<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (this.#isOver || this.#form || this.#forms >= MAX_FORMS) return undefined
    this.#forms++
    const form = work()
    this.#form = form.catch(() => {})
    try {
      return await form
    } finally {
      this.#form = undefined
    }
  }

  /** The time of the call does not run meanwhile. */
  async elicit(
    payload: OutsideRequest<'elicitation'>['payload'],
    signal: AbortSignal,
  ): Promise<Record<string, string[]> | undefined> {
    clearTimeout(this.#timer)
    this.#leftMs -= performance.now() - this.#since
    const either = AbortSignal.any([this.signal, this.#over.signal, signal])
    try {
      const { toolUseId, openRequest } = this.#context
      return (await openRequest({ kind: 'elicitation', toolUseId, payload, signal: either }))?.answers
    } finally {
      if (!this.#isOver) this.#watch()
    }
  }

  readonly onProgress = ({ progress, total, message }: Progress): void => {
    const now = performance.now()
    if (now - this.#shownAt < MIN_PROGRESS_MS || this.#shownChars > MAX_PROGRESS_CHARS) return
    this.#shownAt = now
    const amount = total === undefined ? String(progress) : `${progress} of ${total}`
    const line = `${message === undefined ? amount : `${amount}: ${this.#show(message, MAX_LINE_CHARS)}`}\n`
    this.#shownChars += line.length
    this.#context.onOutput('stdout', line)
  }

  /** A server may end the call without waiting for the answer to its form: the form ends first, and then the call. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#context.signal.removeEventListener('abort', this.#onAbort)
    this.#over.abort(new Error('The call has ended.'))
    await this.#form
  }

  #watch(): void {
    this.#since = performance.now()
    this.#timer = setTimeout(() => {
      this.timedOut = true
      this.#abort.abort(new Error('The call took too long.'))
    }, timerMs(this.#leftMs))
  }
}
