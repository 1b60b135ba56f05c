/**
 * The thread that compiles schemas and validates answers: started by the first question, ended when it is idle or has
 * not answered in time. `schema-program.mjs` is what runs in it.
 */
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { Worker } from 'node:worker_threads'
import { Queue } from '../../lib/queue.ts'

/** Without a text, only the schema is compiled. */
export type SchemaQuestion = { readonly schema: Readonly<Record<string, unknown>>; readonly text?: string }

export type Validation = { readonly value: unknown } | { readonly fault: string }
export type SchemaAnswer = Validation

/** The asset of the executable that has the program. */
export const SCHEMA_ASSET = 'schema-program.js'

/** The program limits its own processor time to less than a tenth; this ends it where that is not enough. */
const ANSWER_MS = 30_000

/** A thread that nobody needs takes 10 MB. */
const IDLE_MS = 30_000

/** A schema or an answer can be small and need much memory. */
const LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 }

export class SchemaThread {
  readonly #idleMs: number
  /** One question at a time: what ends the thread is then the fault of that question. */
  readonly #turns = new Queue({ limit: 1 })
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  /** Answers the present question. */
  #settle: (answer: SchemaAnswer) => void = () => {}

  constructor({ idleMs = IDLE_MS }: { readonly idleMs?: number } = {}) {
    this.#idleMs = idleMs
  }

  get isRunning(): boolean {
    return this.#worker !== undefined
  }

  /** Never rejects: what cannot be answered is a fault. */
  async ask(question: SchemaQuestion): Promise<SchemaAnswer> {
    return await this.#turns.run(() => this.#answer(question))
  }

  async #answer(question: SchemaQuestion): Promise<SchemaAnswer> {
    const answered = Promise.withResolvers<SchemaAnswer>()
    this.#settle = answered.resolve
    clearTimeout(this.#idle)
    const late = setTimeout(() => this.#end({ fault: 'takes too long' }), ANSWER_MS)
    try {
      this.#worker ??= this.#start()
      this.#worker.ref()
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      this.#worker.postMessage(question)
      return await answered.promise
    } catch (error) {
      return faultOf(error)
    } finally {
      clearTimeout(late)
      // The process may end meanwhile.
      this.#worker?.unref()
      this.#idle = setTimeout(() => this.#end(), this.#idleMs).unref()
    }
  }

  #start(): Worker {
    const worker = startWorker()
    const isCurrent = () => this.#worker === worker
    worker.on('message', (answer: SchemaAnswer) => isCurrent() && this.#settle(answer))
    const end = (answer: SchemaAnswer) => isCurrent() && this.#end(answer)
    worker.on('error', (error) => end(faultOf(error)))
    worker.on('exit', () => end({ fault: 'is not usable: the thread that checks it has ended' }))
    return worker
  }

  #end(answer?: SchemaAnswer): void {
    void this.#worker?.terminate()
    this.#worker = undefined
    if (answer) this.#settle(answer)
  }
}

function faultOf(error: unknown): SchemaAnswer {
  if (error instanceof RangeError) return { fault: 'is nested too deeply' }
  if (!(error instanceof Error)) return { fault: 'is not usable' }
  const isLarge = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
  return { fault: isLarge ? 'takes too much memory' : `is not usable: ${error.message}` }
}

function startWorker(): Worker {
  // Nothing of the server's environment or options is for it.
  const options = { env: {}, argv: [], execArgv: [], resourceLimits: LIMITS, name: 'schemas' }
  if (!isSea()) return new Worker(join(import.meta.dirname, 'schema-program.mjs'), options)
  const code = Buffer.from(getRawAsset(SCHEMA_ASSET)).toString('latin1')
  return new Worker(`${code}({}, process.getBuiltinModule, { exports: {} })`, { ...options, eval: true })
}
