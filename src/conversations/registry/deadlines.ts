/**
 * The deadlines of requests that wait, of all conversations, open or not: the earliest of each. A deadline is a time of
 * the wall clock, so that one that has passed while the server was stopped is due at its start.
 */
import { timerMs } from '../../lib/bounded-wait.ts'
import { Queue } from '../../lib/queue.ts'

/** Timers do not follow the clock when it is set, and stand still while the machine is suspended. */
const LONGEST_WAIT_MS = 60_000

/** Conversations that are opened at the same time: at a start, thousands of deadlines may have passed. */
const CONCURRENCY = 64

export class Deadlines {
  /** Milliseconds since 1970, by the id of the conversation. */
  readonly #times = new Map<string, number>()
  readonly #queue = new Queue({ limit: CONCURRENCY })
  #onDue: ((id: string) => Promise<void>) | undefined
  #timer: NodeJS.Timeout | undefined

  /**
   * `onDue` is called with each conversation whose deadline has passed, for some at the same time; it never rejects. The
   * conversation is watched again after the next `set`, or `setLeft`.
   */
  watch(onDue: (id: string) => Promise<void>): void {
    this.#onDue = onDue
    this.#arm()
  }

  set(id: string, time: number | undefined): void {
    if (time === this.#times.get(id)) return
    if (time === undefined) this.#times.delete(id)
    else this.#times.set(id, time)
    this.#arm()
  }

  /** Watches those that are left after `onDue`. The call of one that has passed ends it: it is looked at again in a minute. */
  setLeft(id: string, times: readonly number[]): void {
    const now = Date.now()
    const next = Math.min(...times.map((time) => (time > now ? time : now + LONGEST_WAIT_MS)))
    this.set(id, next === Infinity ? undefined : next)
  }

  /** Calls `onDue` once more in a minute. */
  postpone(id: string): void {
    this.set(id, Date.now() + LONGEST_WAIT_MS)
  }

  stop(): void {
    this.#onDue = undefined
    clearTimeout(this.#timer)
  }

  #arm(): void {
    clearTimeout(this.#timer)
    if (!this.#onDue || this.#times.size === 0) return
    let next = Infinity
    for (const time of this.#times.values()) next = Math.min(next, time)
    const waitMs = Math.min(next - Date.now(), LONGEST_WAIT_MS)
    this.#timer = setTimeout(() => this.#fire(), timerMs(waitMs)).unref()
  }

  #fire(): void {
    const now = Date.now()
    const due = [...this.#times].filter(([, time]) => time <= now)
    for (const [id] of due) this.#times.delete(id)
    for (const [id] of due) void this.#queue.run(async () => await this.#onDue?.(id))
    this.#arm()
  }
}
