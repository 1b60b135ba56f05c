/** Ctrl+C and other signals: the first interrupts the work, the second leaves at once. */
import { readFileSync } from 'node:fs'
import { onEndSignals } from './end-signals.ts'
import { exitNow } from './exit.ts'

/** How long the work may take to stop after a signal that nobody may repeat, in milliseconds. */
const STOP_TIMEOUT_MS = 10_000

export class Interrupts implements Disposable {
  readonly #abort = new AbortController()
  readonly #onFirst: () => void
  readonly #signals: Disposable
  #code: number | undefined

  /** `onFirst` says that it stops. */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst
    this.#signals = onEndSignals((code) => this.#handle(code))
  }

  /** Aborts with the first signal. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** The exit code; undefined if there was no signal. */
  get code(): number | undefined {
    return this.#code
  }

  [Symbol.dispose](): void {
    this.#signals[Symbol.dispose]()
  }

  #handle(code: number): void {
    if (this.#code !== undefined) leave(this.#code)
    this.#code = code
    setTimeout(() => leave(code), STOP_TIMEOUT_MS).unref()
    this.#onFirst()
    this.#abort.abort(new Error('interrupted'))
  }
}

/** Ends what this process has started, too: without a sandbox, commands would continue until the next start. */
function leave(code: number): never {
  for (const pid of children()) {
    try {
      process.kill(-pid, 'SIGKILL') // shells and programs lead groups
    } catch {
      // It has ended, or leads no group.
    }
  }
  exitNow(code)
}

/** Empty where `/proc` does not list them. */
function children(): number[] {
  try {
    const list = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8')
    return list.split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}
