/** A client's command while it runs, and while what it left behind may still write. Knows neither disk nor log. */
import { InputPipe } from '../../shell/input-pipe.ts'
import type { CommandRecord } from './command-record.ts'
import { isOver } from './command-record.ts'

export class LiveCommand {
  record: CommandRecord
  readonly input: InputPipe | undefined
  /** Whether processes in the background still write to its files. */
  isHeld = false
  readonly #abort = new AbortController()
  readonly #started = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  readonly #waiting = new Set<() => void>()
  #changes = 0

  constructor(record: CommandRecord, { hasInput }: { hasInput: boolean }) {
    this.record = record
    this.input = hasInput ? new InputPipe() : undefined
  }

  get isOver(): boolean {
    return isOver(this.record)
  }

  /** Whether the request that it came with has its answer. */
  get isAnswered(): boolean {
    return this.isOver || (this.record.background && this.record.started_at !== undefined)
  }

  /** Aborted when it is to be ended. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Resolves when it runs, or is over without having run. */
  get started(): Promise<void> {
    return this.#started.promise
  }

  /** Resolves when its end has been stored and logged. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** Has it end; `ended` says when it has. */
  abort(): void {
    this.#abort.abort()
  }

  markStarted(record: CommandRecord): void {
    this.record = record
    this.#started.resolve()
    this.change()
  }

  markEnded(): void {
    this.#started.resolve()
    this.#ended.resolve()
    this.change()
  }

  /** How often there was more of its output, or it began or ended. */
  get changes(): number {
    return this.#changes
  }

  change(): void {
    this.#changes++
    for (const wake of this.#waiting) wake()
  }

  /** Resolves at the first change after so many, or when `signal` is aborted. */
  async changedSince(changes: number, signal: AbortSignal): Promise<void> {
    if (this.#changes !== changes || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    const onAbort = () => resolve()
    signal.addEventListener('abort', onAbort)
    await promise
    signal.removeEventListener('abort', onAbort)
    this.#waiting.delete(resolve)
  }
}
