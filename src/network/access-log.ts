/**
 * Counts decisions and reports them at intervals, so that ten thousand connections do not become ten thousand events.
 */
import { formatHost } from './host.ts'
import type { ProxyAccess } from './proxy.ts'

/** `port` is undefined for the combined row of several hosts for which there was no room. */
export type AccessRow = {
  readonly host: string
  readonly port: number | undefined
  readonly allowed: boolean
  readonly reason: string
  readonly count: number
}

export const OTHER_HOSTS = '*'

/** Starts with the first decision, and repeats as long as more follow. */
const WINDOW_MS = 2000
const MAX_ROWS = 20

export class AccessLog {
  readonly #write: (rows: readonly AccessRow[]) => void
  readonly #windowMs: number
  #rows = new Map<string, AccessRow>()
  #timer: NodeJS.Timeout | undefined

  /** `write` receives at most 22 rows at a time, at most once in two seconds. It must not throw. */
  constructor(write: (rows: readonly AccessRow[]) => void, windowMs = WINDOW_MS) {
    this.#write = write
    this.#windowMs = windowMs
  }

  add({ host, port, outcome, reason }: ProxyAccess): void {
    const isAllowed = outcome === 'allowed'
    const one = { host: formatHost(host), port, allowed: isAllowed, reason, count: 1 }
    const key = JSON.stringify([one.host, port, reason])
    if (this.#rows.has(key) || this.#rows.size < MAX_ROWS) this.#count(key, one)
    else
      this.#count(String(isAllowed), {
        host: OTHER_HOSTS,
        port: undefined,
        allowed: isAllowed,
        reason: 'further hosts',
        count: 1,
      })
    this.#timer ??= setTimeout(() => this.flush(), this.#windowMs).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const rows = [...this.#rows.values()]
    this.#rows = new Map()
    if (rows.length > 0) this.#write(rows)
  }

  #count(key: string, row: AccessRow): void {
    this.#rows.set(key, { ...row, count: (this.#rows.get(key)?.count ?? 0) + 1 })
  }
}
