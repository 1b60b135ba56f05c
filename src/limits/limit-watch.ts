/**
 * Checks all conversations with a running shell, four times a second, for limits that the kernel does not enforce by
 * itself.
 */
import { lazily } from '../lib/lazily.ts'
import type { ProcessSamples, SystemLoad } from './process-usage.ts'
import { readSystemLoad, sampleProcesses } from './process-usage.ts'

const INTERVAL_MS = 250

/** The results of one check of the machine, shared by all conversations. */
export type Look = {
  readonly load: SystemLoad
  /** Read on first use. */
  readonly processes: () => Promise<ProcessSamples>
}

export type WatchedGroup = {
  /** Called again only after it has resolved. */
  readonly look: (look: Look) => Promise<void>
}

export class LimitWatch {
  readonly #watched = new Set<WatchedGroup>()
  readonly #busy = new Set<WatchedGroup>()
  readonly #onError: (error: unknown) => void
  #timer: NodeJS.Timeout | undefined

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  add(group: WatchedGroup): void {
    this.#watched.add(group)
    this.#timer ??= setInterval(() => this.#lookAtAll(), INTERVAL_MS).unref()
  }

  remove(group: WatchedGroup): void {
    this.#watched.delete(group)
    if (this.#watched.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #lookAtAll(): void {
    const look = { load: readSystemLoad(), processes: lazily(sampleProcesses) }
    for (const group of this.#watched) {
      if (this.#busy.has(group)) continue
      this.#busy.add(group)
      group
        .look(look)
        .catch(this.#onError)
        .finally(() => this.#busy.delete(group))
    }
  }
}
