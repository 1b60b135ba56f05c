/** A client's command while it runs, and while its background processes may still write. Knows neither disk nor log. */
import { InputPipe } from '../../shell/input-pipe.ts'
import type { CommandRecord } from './command-record.ts'
import { isOver } from './command-record.ts'

export class LiveCommand {
  record: CommandRecord
  readonly input: InputPipe | undefined
  /** True while background processes still write to its files. */
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

  /** True if its request has been answered. */
  get isAnswered(): boolean {
    return this.isOver || (this.record.background && this.record.started_at !== undefined)
  }

  /** Aborted when the command is to be ended. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Resolves when it runs, or has ended without running. */
  get started(): Promise<void> {
    return this.#started.promise
  }

  /** Resolves when its end has been stored and logged. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** Ends the command; `ended` resolves when it has ended. */
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

  /** Counts changes: new output, start and end. */
  get changes(): number {
    return this.#changes
  }

  change(): void {
    this.#changes++
    for (const wake of this.#waiting) wake()
  }

  /** Resolves at the first change after `changes`, or when `signal` is aborted. */
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
