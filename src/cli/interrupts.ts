/** Ctrl+C and SIGTERM: the first interrupts the work, the second leaves at once. */

/** 128 and the number of the signal, as shells report it. */
const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
type Name = keyof typeof CODES

/** How long the work may take to stop after a signal that nobody may repeat, in milliseconds. */
const STOP_TIMEOUT_MS = 10_000

export class Interrupts implements Disposable {
  readonly #abort = new AbortController()
  readonly #onFirst: () => void
  #code: number | undefined

  /** `onFirst` says that it stops. */
  constructor(onFirst: () => void) {
    this.#onFirst = onFirst
    for (const name of NAMES) process.on(name, this.#handle)
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
    for (const name of NAMES) process.off(name, this.#handle)
  }

  readonly #handle = (name: Name): void => {
    if (this.#code !== undefined) process.exit(this.#code)
    this.#code = CODES[name]
    setTimeout(() => process.exit(CODES[name]), STOP_TIMEOUT_MS).unref()
    this.#onFirst()
    this.#abort.abort(new Error('interrupted'))
  }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
const NAMES = Object.keys(CODES) as Name[]
