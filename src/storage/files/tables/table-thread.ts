/** The thread that writes the tables: started by the first request, ended when it is idle. `table-program.mjs` runs in it. */
import { once } from 'node:events'
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { Worker } from 'node:worker_threads'
import type { SqliteFailure } from '../sqlite.ts'
import { errorFor } from '../sqlite.ts'

export type Row = Readonly<Record<string, unknown>>
export type Value = string | number | null
export type TableStep = { readonly sql: string; readonly values: readonly Value[] }

/** All steps of a request are stored, or none. */
export type TableRequest = { readonly number: number; readonly steps: readonly TableStep[] }
export type TableAnswer = { readonly number: number } & (
  | { readonly rows: readonly (readonly Row[])[] }
  | { readonly error: SqliteFailure }
)

/** The asset of the executable that has the program. */
export const TABLE_ASSET = 'table-program.js'

/** A thread that nobody needs takes some megabytes. */
const IDLE_MS = 30_000
const LIMITS = { maxYoungGenerationSizeMb: 4 }

type Asked = PromiseWithResolvers<readonly (readonly Row[])[]>

export class TableThread {
  readonly #url: string
  readonly #asked = new Map<number, Asked>()
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #count = 0
  #ending: Promise<unknown> = Promise.resolve()

  /** `url`: that of the database, which exists. */
  constructor(url: string) {
    this.#url = url
  }

  get isRunning(): boolean {
    return this.#worker !== undefined
  }

  /** Resolves to the rows of each step when all are stored, durably; rejects, with a code, when none is. */
  ask(steps: readonly TableStep[]): Promise<readonly (readonly Row[])[]> {
    clearTimeout(this.#idle)
    const worker = (this.#worker ??= this.#start())
    const asked: Asked = Promise.withResolvers()
    const number = ++this.#count
    this.#asked.set(number, asked)
    worker.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage({ number, steps } satisfies TableRequest)
    return asked.promise
  }

  /** Resolves when nothing is asked. */
  async settled(): Promise<void> {
    while (this.#asked.size > 0) await Promise.allSettled(this.#asked.values().map(({ promise }) => promise))
  }

  /** Resolves when what was asked is answered, and the database is closed. */
  async end(): Promise<void> {
    clearTimeout(this.#idle)
    const worker = this.#worker
    this.#worker = undefined
    if (worker) this.#ending = once(worker, 'exit')
    // The process must not end before its database is closed.
    worker?.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker?.postMessage('close')
    await this.#ending
  }

  #start(): Worker {
    const worker = startWorker(this.#url)
    worker.on('message', (answers: readonly TableAnswer[]) => {
      for (const answer of answers) this.#settle(answer)
      if (this.#asked.size > 0 || this.#worker !== worker) return
      worker.unref()
      this.#idle = setTimeout(() => void this.end(), IDLE_MS).unref()
    })
    worker.on('error', (error) => {
      if (this.#worker === worker) this.#worker = undefined
      for (const [number, { reject }] of this.#asked) {
        this.#asked.delete(number)
        reject(error)
      }
    })
    return worker
  }

  #settle(answer: TableAnswer): void {
    const asked = this.#asked.get(answer.number)
    this.#asked.delete(answer.number)
    if ('rows' in answer) asked?.resolve(answer.rows)
    else asked?.reject(errorFor(answer.error))
  }
}

function startWorker(url: string): Worker {
  // Nothing of the server's environment or options is for it.
  const options = { env: {}, argv: [], execArgv: [], resourceLimits: LIMITS, name: 'tables', workerData: { url } }
  if (!isSea()) return new Worker(join(import.meta.dirname, 'table-program.mjs'), options)
  const code = Buffer.from(getRawAsset(TABLE_ASSET)).toString('latin1')
  return new Worker(`${code}({}, process.getBuiltinModule, { exports: {} })`, { ...options, eval: true })
}
