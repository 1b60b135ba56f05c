/** Ctrl+C and SIGTERM: the first interrupts the work, the second leaves at once. */
import { readFileSync } from 'node:fs'

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
    if (this.#code !== undefined) leave(this.#code)
    this.#code = CODES[name]
    setTimeout(() => leave(CODES[name]), STOP_TIMEOUT_MS).unref()
    this.#onFirst()
    this.#abort.abort(new Error('interrupted'))
  }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the record
const NAMES = Object.keys(CODES) as Name[]

/** Ends what this process has started, too: without a sandbox, commands would continue until the next start. */
function leave(code: number): never {
  for (const pid of children()) {
    try {
      process.kill(-pid, 'SIGKILL') // shells and programs lead groups
    } catch {
      // It has ended, or leads no group.
    }
  }
  process.exit(code)
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
