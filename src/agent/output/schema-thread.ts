/**
 * The thread that compiles schemas and validates answers: started by the first question, ended when it is idle or has
 * not answered in time. `schema-program.mjs` is what runs in it.
 */
import { join } from 'node:path'
import { getRawAsset, isSea } from 'node:sea'
import { Worker } from 'node:worker_threads'
import { Problem } from '../../contract/problem.ts'
import { codeOf, isOutOfDescriptors } from '../../lib/error-code.ts'
import { Queue } from '../../lib/queue.ts'
import { waitForDescriptors } from '../../shell/wait-for-descriptors.ts'

/** A question without a text only compiles the schema. */
export type SchemaQuestion = { readonly schema: Readonly<Record<string, unknown>>; readonly text?: string }

export type Validation = { readonly value: unknown } | { readonly fault: string }
export type SchemaAnswer = Validation

/** The asset of the executable that has the program. */
export const SCHEMA_ASSET = 'schema-program.js'

/** Processor time of one question, in milliseconds. Ordinary schemas take 50 the first time. */
const CPU_MS = 800
/** The start of the thread is over at the first look, and does not count. */
const LOOK_MS = 200

/**
 * This ends the thread where its processor time is not enough: on a busy machine, most of the time passes without work.
 */
const ANSWER_MS = 30_000

/** A thread that nobody needs takes 10 MB. */
const IDLE_MS = 30_000

/** A schema or an answer can be small and need much memory. */
const LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 }

export class SchemaThread {
  readonly #idleMs: number
  readonly #cpuMs: number
  /** One question at a time: what ends the thread is then the fault of that question. */
  readonly #queue = new Queue({ limit: 1 })
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  /** The answer to the present question. */
  #answered = Promise.withResolvers<SchemaAnswer>()

  constructor({ idleMs = IDLE_MS, cpuMs = CPU_MS }: { readonly idleMs?: number; readonly cpuMs?: number } = {}) {
    this.#idleMs = idleMs
    this.#cpuMs = cpuMs
  }

  get isRunning(): boolean {
    return this.#worker !== undefined
  }

  /** What cannot be answered is a fault. Throws a `Problem` only while the machine has no room for the thread. */
  async check(question: SchemaQuestion): Promise<SchemaAnswer> {
    return await this.#queue.run(() => this.#answer(question))
  }

  async #answer(question: SchemaQuestion): Promise<SchemaAnswer> {
    clearTimeout(this.#idle)
    try {
      return await waitForDescriptors(() => this.#attempt(question))
    } finally {
      // The process may end meanwhile.
      this.#worker?.unref()
      this.#idle = setTimeout(() => this.#end(), this.#idleMs).unref()
    }
  }

  async #attempt(question: SchemaQuestion): Promise<SchemaAnswer> {
    this.#answered = Promise.withResolvers()
    const worker = (this.#worker ??= this.#start())
    const look = this.#createLook(worker)
    const looking = setInterval(() => void look(), LOOK_MS)
    try {
      worker.ref()
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage(question)
      return await this.#answered.promise
    } catch (error) {
      if (isOutOfDescriptors(error) || error instanceof Problem) throw error
      return faultOf(error)
    } finally {
      clearInterval(looking)
    }
  }

  #start(): Worker {
    const worker = startWorker()
    const isCurrent = () => this.#worker === worker
    worker.on('message', (answer: SchemaAnswer) => isCurrent() && this.#answered.resolve(answer))
    const end = (error: Error) => isCurrent() && this.#end(explain(error))
    worker.on('error', end)
    worker.on('exit', () => end(new Error('the thread that checks it has ended')))
    return worker
  }

  /**
   * Looks from here, and not by a time limit of `vm` in the thread: a descriptor that such a limit does not get is a
   * failed assertion of Node, which ends the server.
   */
  #createLook(worker: Worker): () => Promise<void> {
    const startedAt = performance.now()
    let usedBefore: number | undefined
    return async () => {
      // The thread may have ended, and is replaced then.
      const usage = await worker.cpuUsage().catch(() => undefined)
      const usedMs = usage && (usage.user + usage.system) / 1000
      usedBefore ??= usedMs
      const isOver = (usedMs ?? 0) - (usedBefore ?? 0) > this.#cpuMs || performance.now() - startedAt > ANSWER_MS
      if (isOver && this.#worker === worker) this.#end(new TooLong())
    }
  }

  #end(error?: Error): void {
    void this.#worker?.terminate()
    this.#worker = undefined
    if (error) this.#answered.reject(error)
  }
}

class TooLong extends Error {}

function faultOf(error: unknown): SchemaAnswer {
  if (error instanceof TooLong) return { fault: 'takes too long' }
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

/** The schema is not to blame for what the machine lacks, other than descriptors. */
function explain(error: Error): Error {
  if (codeOf(error) !== 'ERR_WORKER_INIT_FAILED') return error
  const message = `The thread that checks schemas could not be started: ${error.message}. Try again in a moment.`
  return new Problem('unavailable', message, { cause: error })
}
