/** Counts decisions and tells of them now and then, so that ten thousand connections do not become ten thousand events. */
import { formatHost } from './host.ts'
import type { ProxyAccess } from './proxy.ts'

/** `port` undefined: of several hosts that there was no room for. */
export type AccessRow = {
  readonly host: string
  readonly port: number | undefined
  readonly allowed: boolean
  readonly reason: string
  readonly count: number
}

export const OTHER_HOSTS = '*'

/** After the first decision, and as long as more come. */
const WINDOW_MS = 2000
const MAX_ROWS = 20

export class AccessLog {
  readonly #write: (rows: readonly AccessRow[]) => void
  readonly #windowMs: number
  #rows = new Map<string, AccessRow>()
  #timer: NodeJS.Timeout | undefined

  /** `write` gets at most 22 rows at a time, at most once in two seconds. It must not throw. */
  constructor(write: (rows: readonly AccessRow[]) => void, windowMs = WINDOW_MS) {
    this.#write = write
    this.#windowMs = windowMs
  }

  add({ host, port, outcome, reason }: ProxyAccess): void {
    const allowed = outcome === 'allowed'
    const one = { host: formatHost(host), port, allowed, reason, count: 1 }
    const key = JSON.stringify([one.host, port, reason])
    if (this.#rows.has(key) || this.#rows.size < MAX_ROWS) this.#count(key, one)
    else
      this.#count(String(allowed), { host: OTHER_HOSTS, port: undefined, allowed, reason: 'further hosts', count: 1 })
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
