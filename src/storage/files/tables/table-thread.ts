/** The thread that writes the tables. `table-program.mjs` is what runs in it. */
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { Worker } from 'node:worker_threads'
import type { SqliteFailure } from '../directory/sqlite.ts'
import { errorFor } from '../directory/sqlite.ts'

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

const LIMITS = { maxYoungGenerationSizeMb: 4 }

type PendingSteps = PromiseWithResolvers<readonly (readonly Row[])[]>

export class TableThread {
  readonly #worker: Worker
  readonly #pending = new Map<number, PendingSteps>()
  readonly #exited: Promise<unknown>
  #count = 0
  #hasEnded = false

  /** Starts it. `url`: that of the database, which exists. */
  constructor(url: string) {
    this.#worker = startWorker(url)
    this.#exited = new Promise((resolve) => void this.#worker.on('exit', resolve))
    this.#worker.on('message', (answers: readonly TableAnswer[]) => {
      for (const answer of answers) this.#settle(answer)
      if (this.isIdle) this.#worker.unref()
    })
    this.#worker.on('error', (error) => {
      this.#hasEnded = true
      for (const { reject } of this.#pending.values()) reject(error)
      this.#pending.clear()
    })
  }

  get isIdle(): boolean {
    return this.#pending.size === 0
  }

  /** True after an error of the thread itself: it answers nothing any more. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Resolves to the rows of each step when all are stored, durably; rejects, with a code, when none is. */
  run(steps: readonly TableStep[]): Promise<readonly (readonly Row[])[]> {
    const pendingSteps: PendingSteps = Promise.withResolvers()
    const number = ++this.#count
    this.#pending.set(number, pendingSteps)
    this.#worker.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.#worker.postMessage({ number, steps } satisfies TableRequest)
    return pendingSteps.promise
  }

  /** Resolves when nothing is asked. */
  async settled(): Promise<void> {
    while (!this.isIdle) await Promise.allSettled(this.#pending.values().map(({ promise }) => promise))
  }

  /** Resolves when what was asked is answered, and the database is closed. */
  async close(): Promise<void> {
    // The process must not end before.
    this.#worker.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.#worker.postMessage('close')
    await this.#exited
  }

  #settle(answer: TableAnswer): void {
    const pendingSteps = this.#pending.get(answer.number)
    this.#pending.delete(answer.number)
    if ('rows' in answer) pendingSteps?.resolve(answer.rows)
    else pendingSteps?.reject(errorFor(answer.error))
  }
}

function startWorker(url: string): Worker {
  // Nothing of the server's environment or options is for it.
  const options = { env: {}, argv: [], execArgv: [], resourceLimits: LIMITS, name: 'tables', workerData: { url } }
  if (!isSea()) return new Worker(join(import.meta.dirname, 'table-program.mjs'), options)
  const code = Buffer.from(getRawAsset(TABLE_ASSET)).toString('latin1')
  return new Worker(`${code}({}, process.getBuiltinModule, { exports: {} })`, { ...options, eval: true })
}
