/**
 * API keys: creates, finds, rotates and revokes them. Stores them in `keys.json`, as hashes. All keys are in memory;
 * the file is written, durably, before a change takes effect.
 */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import type { ApiKey, CreatedKey, CreateKey, RotateKey } from '../contract/key.ts'
import { Scope } from '../contract/key.ts'
import { Problem } from '../contract/problem.ts'
import { replaceFile } from '../lib/durable-file.ts'
import { Queue } from '../lib/queue.ts'
import { uuid7 } from '../lib/uuid7.ts'
import { Access } from './access.ts'
import { hashCredential, makeCredential } from './credential.ts'
import { codeOf } from '../lib/error-code.ts'
import { timerMs } from '../lib/bounded-wait.ts'

const MAX_KEYS = 10_000
/** The valid one, and those of rotations whose overlap is not over. */
const MAX_CREDENTIALS = 10
/** The last moment that RFC 3339 can write. */
const LAST_TIME = Date.parse('9999-12-31T23:59:59.999Z')
const PREFIX_CHARS = 'ask_'.length + 4
/** The resolution of `last_used_at`, so that requests do not write to disk. */
const USE_RESOLUTION_MS = 60_000
/** Timers do not run on while the machine is suspended, and do not follow a clock that is set. */
const CLOCK_CHECK_MS = 60_000

const Credential = z.object({ hash: z.string(), expires_at: z.iso.datetime().optional() })

const StoredKey = z.object({
  id: z.uuid(),
  name: z.string(),
  prefix: z.string(),
  scopes: z.array(Scope),
  conversations: z.array(z.uuid()).optional(),
  user_id: z.string().optional(),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
  last_used_at: z.iso.datetime().optional(),
  /** The current credential, and during a rotation the previous one. */
  credentials: z.array(Credential).min(1),
})
type StoredKey = z.infer<typeof StoredKey>

const KeyFile = z.object({ version: z.literal(1), keys: z.array(StoredKey) })

type Known = { readonly keyId: string; readonly access: Access; readonly end: AbortController; readonly until: number }

export class ApiKeys implements AsyncDisposable {
  readonly #path: string
  readonly #now: () => number
  readonly #changes = new Queue({ limit: 1 })
  #keys: ReadonlyMap<string, StoredKey>
  /** By hash of the credential: those that are valid until revoked or expired. */
  #known = new Map<string, Known>()
  readonly #lastUsed = new Map<string, number>()
  #areUsesUnwritten = false
  #expiry: NodeJS.Timeout | undefined
  #useTimer: NodeJS.Timeout | undefined
  #isClosed = false

  private constructor(path: string, keys: readonly StoredKey[], now: () => number) {
    this.#path = path
    this.#now = now
    this.#keys = new Map(keys.map((key) => [key.id, key]))
    this.#learn()
  }

  /**
   * Throws if the file exists and cannot be read: revoked keys must not become valid again, and other keys must not be
   * lost.
   */
  static async open(path: string, now: () => number = Date.now): Promise<ApiKeys> {
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return new ApiKeys(path, [], now)
      throw error
    }
    try {
      return new ApiKeys(path, KeyFile.parse(JSON.parse(text)).keys, now)
    } catch (cause) {
      throw new Error(`${path} is damaged. Restore it from a backup, or remove it to revoke all API keys.`, { cause })
    }
  }

  /** Returns undefined for an invalid key. */
  find(credential: string): Access | undefined {
    const known = this.#known.get(hashCredential(credential))
    if (!known || known.until <= this.#now()) return undefined
    this.#noteUse(known.keyId)
    return known.access
  }

  list(): ApiKey[] {
    return [...this.#keys.values()].map((key) => this.#shown(key))
  }

  /** Throws `key_not_found`. */
  get(id: string): ApiKey {
    return this.#shown(this.#stored(id))
  }

  async create(request: CreateKey): Promise<CreatedKey> {
    return await this.#changes.run(async () => {
      if (this.#keys.size >= MAX_KEYS)
        throw new Problem('limit_reached', `There are already ${MAX_KEYS} keys. Delete unused ones.`)
      const { expires_at: expiresAt, conversations, ...rest } = request
      const key = makeCredential('ask_')
      const stored: StoredKey = {
        id: uuid7(),
        ...rest,
        scopes: [...new Set(request.scopes)],
        ...(conversations && { conversations: [...new Set(conversations)] }),
        prefix: key.slice(0, PREFIX_CHARS),
        created_at: new Date(this.#now()).toISOString(),
        ...(expiresAt !== undefined && { expires_at: this.#future(expiresAt) }),
        credentials: [{ hash: hashCredential(key) }],
      }
      await this.#write(new Map([...this.#keys, [stored.id, stored]]))
      return { ...this.#shown(stored), key }
    })
  }

  /**
   * Creates a new credential for the same key; the previous one stays valid for `overlap_seconds`, and those before it for
   * as long as they were to be: a rotation that is repeated after a lost response ends nothing. An overlap of 0 ends all
   * of them. Throws `key_not_found`.
   */
  async rotate(id: string, { overlap_seconds }: RotateKey): Promise<CreatedKey> {
    return await this.#changes.run(async () => {
      const stored = this.#stored(id)
      const key = makeCredential('ask_')
      const [current, ...older] = stored.credentials
      const until = new Date(this.#now() + overlap_seconds * 1000).toISOString()
      const overlapping = older.filter(({ expires_at }) => timeOf(expires_at) > this.#now())
      const previous = current && overlap_seconds > 0 ? [{ ...current, expires_at: until }, ...overlapping] : []
      const rotated: StoredKey = {
        ...stored,
        prefix: key.slice(0, PREFIX_CHARS),
        credentials: [{ hash: hashCredential(key) }, ...previous].slice(0, MAX_CREDENTIALS),
      }
      await this.#write(new Map([...this.#keys, [id, rotated]]))
      return { ...this.#shown(rotated), key }
    })
  }

  /** Ends its streams immediately. Throws `key_not_found`. */
  async revoke(id: string): Promise<void> {
    await this.#changes.run(async () => {
      this.#stored(id)
      const keys = new Map(this.#keys)
      keys.delete(id)
      await this.#write(keys)
      this.#lastUsed.delete(id)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#expiry)
    clearTimeout(this.#useTimer)
    // This must not make a shutdown fail.
    if (this.#areUsesUnwritten) await this.#changes.run(() => this.#write(this.#keys)).catch(() => {})
  }

  async #write(keys: ReadonlyMap<string, StoredKey>): Promise<void> {
    const stored = [...keys.values()].map((key) => ({ ...key, ...this.#useOf(key) }))
    await replaceFile(this.#path, `${JSON.stringify({ version: 1, keys: stored }, undefined, 2)}\n`, {
      draft: `${this.#path}.new`,
    })
    this.#keys = keys
    this.#areUsesUnwritten = false
    this.#learn()
  }

  /** Updates `#known` from `#keys`; ends what is no longer valid. */
  #learn(): void {
    const before = this.#known
    this.#known = new Map()
    for (const key of this.#keys.values()) {
      for (const credential of key.credentials) {
        const until = Math.min(timeOf(key.expires_at), timeOf(credential.expires_at))
        if (until <= this.#now()) continue
        const known = before.get(credential.hash)
        this.#known.set(credential.hash, known ? { ...known, until } : knownOf(key, until))
      }
    }
    for (const [hash, { end }] of before) if (!this.#known.has(hash)) end.abort()
    this.#awaitExpiry()
  }

  #awaitExpiry(): void {
    clearTimeout(this.#expiry)
    // Not as arguments of one call: there may be a hundred thousand.
    const next = this.#known.values().reduce((least, { until }) => Math.min(least, until), Infinity)
    if (next !== Infinity && !this.#isClosed) this.#wait(next)
  }

  #wait(next: number): void {
    const left = next - this.#now()
    if (left <= 0) return this.#learn()
    this.#expiry = setTimeout(() => this.#wait(next), timerMs(Math.min(left, CLOCK_CHECK_MS))).unref()
  }

  #noteUse(id: string): void {
    const now = this.#now()
    if (now - (this.#lastUsed.get(id) ?? 0) < USE_RESOLUTION_MS) return
    this.#lastUsed.set(id, now)
    this.#areUsesUnwritten = true
    this.#useTimer ??= setTimeout(() => this.#writeUses(), USE_RESOLUTION_MS).unref()
  }

  /** Not worth an error: the time is written with the next change. */
  #writeUses(): void {
    this.#useTimer = undefined
    if (this.#areUsesUnwritten) this.#changes.run(() => this.#write(this.#keys)).catch(() => {})
  }

  #useOf({ id, last_used_at }: StoredKey): Pick<StoredKey, 'last_used_at'> {
    const used = this.#lastUsed.get(id)
    const time = used === undefined ? last_used_at : new Date(used).toISOString()
    return time === undefined ? {} : { last_used_at: time }
  }

  #stored(id: string): StoredKey {
    const stored = this.#keys.get(id)
    if (stored) return stored
    throw new Problem('key_not_found', `There is no API key ${id}. GET /keys lists all of them.`)
  }

  #shown({ credentials, ...stored }: StoredKey): ApiKey {
    const [, ...previous] = credentials
    const until = Math.max(...previous.map(({ expires_at }) => timeOf(expires_at)))
    return {
      ...stored,
      ...this.#useOf({ ...stored, credentials }),
      ...(until > this.#now() && { previous_valid_until: new Date(until).toISOString() }),
    }
  }

  /** Throws `invalid_request` for a time in the past, or too late to be written. */
  #future(time: string): string {
    if (timeOf(time) > LAST_TIME)
      throw new Problem('invalid_request', 'expires_at is after the year 9999 in UTC. Leave it out for no expiry.')
    if (timeOf(time) > this.#now()) return new Date(time).toISOString()
    throw new Problem('invalid_request', 'expires_at is in the past. Use a time in the future.')
  }
}

const timeOf = (time: string | undefined): number => (time === undefined ? Infinity : Date.parse(time))

function knownOf({ id, name, scopes, conversations, user_id: userId }: StoredKey, until: number): Known {
  const end = new AbortController()
  const limits = { conversations: conversations && new Set(conversations), userId }
  return { keyId: id, access: new Access({ id, name }, scopes, limits, end.signal), end, until }
}
