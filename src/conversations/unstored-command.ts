/** The command of one conversation that could not be stored: kept, and tried again with backoff until it is. It comes before all others. */
import { Retrier } from './retrier.ts'
import type { Command } from './state/commands.ts'

export class UnstoredCommand {
  readonly #retrier: Retrier
  readonly #watchers = new Set<() => void>()
  #kept: Command | undefined

  /** `tryAgain` calls `store`, when it is its turn. */
  constructor(tryAgain: () => Promise<unknown>) {
    this.#retrier = new Retrier(tryAgain)
  }

  get kept(): Command | undefined {
    return this.#kept
  }

  keep(command: Command): void {
    this.#kept = command
    this.tryLater()
    for (const onKept of this.#watchers) onKept()
  }

  async store(carryOut: (command: Command) => Promise<unknown>): Promise<void> {
    if (!this.#kept) return
    await carryOut(this.#kept)
    this.#kept = undefined
  }

  /** Also for what else the disk did not take. */
  tryLater(): void {
    this.#retrier.later()
  }

  stop(): void {
    this.#retrier.stop()
  }

  /** Calls `onKept` whenever there is a command to keep. Returns how to stop. */
  watch(onKept: () => void): () => void {
    this.#watchers.add(onKept)
    return () => this.#watchers.delete(onKept)
  }
}
