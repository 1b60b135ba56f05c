/**
 * The rows of one table of credentials, API keys or logins, or of profiles: all are in memory, with when they were used. A change is
 * stored, durably, before it takes effect. What the values mean is decided by their owner.
 */
import { Queue } from '../lib/queue.ts'
import type { CredentialTable, StoredCredential } from '../storage/storage.ts'

/** The resolution of `usedAt`, so that requests do not write to disk. */
const USE_RESOLUTION_MS = 60_000
/** How often it is looked whether another instance has changed a credential. */
const VERSION_CHECK_MS = 1000

type Owner<T> = {
  readonly table: CredentialTable
  readonly now: () => number
  /** Returns undefined to ignore a damaged value; throws if it must not be ignored. */
  readonly parse: (stored: StoredCredential) => T | undefined
  /** Called after each change of `all`, of this or another process. */
  readonly onChange: (all: ReadonlyMap<string, T>) => void
}

export class KeptCredentials<T extends object> implements AsyncDisposable {
  readonly #owner: Owner<T>
  readonly #changes = new Queue({ limit: 1 })
  #version = 0
  #all: ReadonlyMap<string, T> = new Map()
  readonly #used = new Map<string, string>()
  #unwrittenUses = new Map<string, string>()
  #useTimer: NodeJS.Timeout | undefined
  #watch: NodeJS.Timeout | undefined

  /** Empty until `read`. */
  constructor(owner: Owner<T>) {
    this.#owner = owner
  }

  /** The credentials by id, oldest first. */
  get all(): ReadonlyMap<string, T> {
    return this.#all
  }

  async read(): Promise<void> {
    const { version, keys } = await this.#owner.table.read()
    for (const { id, usedAt = '' } of keys) if (usedAt > (this.#used.get(id) ?? '')) this.#used.set(id, usedAt)
    const parsedCredentials = keys.map((credential) => [credential.id, this.#owner.parse(credential)] as const)
    this.#all = new Map(parsedCredentials.flatMap(([id, value]) => (value ? [[id, value] as const] : [])))
    this.#version = version
    this.#owner.onChange(this.#all)
  }

  /** Reads the rows if another process has changed one. */
  async follow(): Promise<void> {
    if ((await this.#owner.table.version()) !== this.#version) await this.#changes.run(() => this.read())
  }

  /** Resolves when `all` has what other instances have stored. */
  async upToDate(): Promise<void> {
    if (this.#watch) await this.follow()
  }

  /** Reads the rows after the changes in progress: uses that other instances have noted change no version. */
  async readUses(): Promise<void> {
    await this.#changes.run(() => this.read())
  }

  /** A credential that another instance ends here, too. Call it where several instances share the storage. */
  watch(): void {
    this.#watch ??= setInterval(() => void this.follow().catch(() => {}), VERSION_CHECK_MS).unref()
  }

  /** Runs `work` when no other change is in progress. */
  change<R>(work: () => Promise<R>): Promise<R> {
    return this.#changes.run(work)
  }

  /** Call it within `change`. `changed` returns the new value, from the present ones; undefined removes the row. */
  async store(id: string, createChanged: () => T | undefined): Promise<void> {
    for (;;) {
      const value = createChanged()
      const version = await this.#owner.table.change(this.#version, id, value)
      if (version === undefined) {
        await this.read()
        continue
      }
      const all = new Map(this.#all)
      if (value) all.set(id, value)
      else all.delete(id)
      if (!value) this.#used.delete(id)
      this.#all = all
      this.#version = version
      return this.#owner.onChange(all)
    }
  }

  /** RFC 3339, exact to a minute; undefined if it was never used. */
  usedAt(id: string): string | undefined {
    return this.#used.get(id)
  }

  noteUse(id: string): void {
    const now = this.#owner.now()
    if (now - Date.parse(this.#used.get(id) ?? '1970-01-01') < USE_RESOLUTION_MS) return
    const time = new Date(now).toISOString()
    this.#used.set(id, time)
    this.#unwrittenUses.set(id, time)
    this.#useTimer ??= setTimeout(() => void this.#writeUses(), USE_RESOLUTION_MS).unref()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#useTimer)
    clearInterval(this.#watch)
    await this.#writeUses()
  }

  /** Throws no error: the time is written with the next ones. */
  async #writeUses(): Promise<void> {
    this.#useTimer = undefined
    const uses = this.#unwrittenUses
    if (uses.size === 0) return
    this.#unwrittenUses = new Map()
    await this.#owner.table.noteUses(uses).catch(() => {
      this.#unwrittenUses = new Map([...uses, ...this.#unwrittenUses])
    })
  }
}
