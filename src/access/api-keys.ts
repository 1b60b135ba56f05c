/** API keys: creates, finds, rotates and revokes them. Stores their hashes. */
import { z } from 'zod'
import type { ApiKey, CreatedKey, CreateKey, RotateKey } from '../contract/key.ts'
import { Scope } from '../contract/key.ts'
import { Problem } from '../contract/problem.ts'
import { uuid7 } from '../lib/uuid7.ts'
import { Access } from './access.ts'
import { hashCredential, makeCredential } from './credential.ts'
import { timerMs } from '../lib/bounded-wait.ts'
import type { CredentialTable, StoredCredential } from '../storage/storage.ts'
import { KeptCredentials } from './kept-credentials.ts'

const MAX_KEYS = 10_000
/** The valid one, and those of rotations whose overlap is not over. */
const MAX_CREDENTIALS = 10
/** The last moment that RFC 3339 can write. */
const LAST_TIME = Date.parse('9999-12-31T23:59:59.999Z')
const PREFIX_CHARS = 'ask_'.length + 4
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
  profiles: z.array(z.string()).optional(),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().optional(),
  /** The current credential, and during a rotation the previous one. */
  credentials: z.array(Credential).min(1),
})
type StoredKey = z.infer<typeof StoredKey>

type KnownKey = {
  readonly keyId: string
  readonly access: Access
  readonly end: AbortController
  readonly until: number
}

export class ApiKeys implements AsyncDisposable {
  readonly #now: () => number
  readonly #credentials: KeptCredentials<StoredKey>
  /** The keys that are valid until revoked or expired, by hash of the credential. */
  #keysByHash = new Map<string, KnownKey>()
  #expiry: NodeJS.Timeout | undefined
  #isClosed = false

  private constructor(table: CredentialTable, now: () => number) {
    this.#now = now
    this.#credentials = new KeptCredentials({ table, now, parse: parseKey, onChange: () => this.#learn() })
  }

  /** Throws if the keys cannot be read: revoked keys must not become valid again, and other keys must not be lost. */
  static async open(table: CredentialTable, now: () => number = Date.now): Promise<ApiKeys> {
    const keys = new ApiKeys(table, now)
    await keys.#credentials.read()
    return keys
  }

  /** Returns undefined for an invalid key. */
  async find(credential: string): Promise<Access | undefined> {
    return await this.findHashed(hashCredential(credential))
  }

  /** Finds a login of the key. Asks the storage for unknown ones only: another process may have made them. */
  async findHashed(hash: string): Promise<Access | undefined> {
    if (!this.#keysByHash.has(hash)) await this.#credentials.follow()
    const knownKey = this.#valid(hash)
    if (knownKey) this.#credentials.noteUse(knownKey.keyId)
    return knownKey?.access
  }

  /** Returns the hash of the credential that has these permissions; undefined after its end. */
  hashOf({ ended }: Access): string | undefined {
    for (const [hash, { end }] of this.#keysByHash) if (end.signal === ended) return hash
    return undefined
  }

  /**
   * Returns true if the key of this hash is valid, as far as this process knows. It does not count as a use of the key.
   */
  isValid(hash: string): boolean {
    return this.#valid(hash) !== undefined
  }

  #valid(hash: string): KnownKey | undefined {
    const knownKey = this.#keysByHash.get(hash)
    return knownKey && knownKey.until > this.#now() ? knownKey : undefined
  }

  /** A key that another instance revokes ends here, too. Call it where several instances share the storage. */
  watch(): void {
    this.#credentials.watch()
  }

  async list(): Promise<ApiKey[]> {
    await this.#credentials.upToDate()
    return [...this.#credentials.all.values()].map((key) => this.#shown(key))
  }

  /** Throws `key_not_found`. */
  async get(id: string): Promise<ApiKey> {
    await this.#seek(id)
    return this.#shown(this.#stored(id))
  }

  async create(request: CreateKey): Promise<CreatedKey> {
    return await this.#credentials.change(async () => {
      if (this.#credentials.all.size >= MAX_KEYS)
        throw new Problem('limit_reached', `There are already ${MAX_KEYS} keys. Delete unused ones.`)
      const { expires_at: expiresAt, conversations, profiles, ...rest } = request
      const key = makeCredential('ask_')
      const storedKey: StoredKey = {
        id: uuid7(),
        ...rest,
        scopes: [...new Set(request.scopes)],
        ...(conversations && { conversations: [...new Set(conversations)] }),
        ...(profiles && { profiles: [...new Set(profiles)] }),
        prefix: key.slice(0, PREFIX_CHARS),
        created_at: new Date(this.#now()).toISOString(),
        ...(expiresAt !== undefined && { expires_at: this.#future(expiresAt) }),
        credentials: [{ hash: hashCredential(key) }],
      }
      await this.#credentials.store(storedKey.id, () => storedKey)
      return { ...this.#shown(storedKey), key }
    })
  }

  /**
   * Creates a new credential for the same key; the previous one stays valid for `overlap_seconds`, and those before it for
   * as long as they were to be: a rotation that is repeated after a lost response ends nothing. An overlap of 0 ends all
   * of them. Throws `key_not_found`.
   */
  async rotate(id: string, { overlap_seconds }: RotateKey): Promise<CreatedKey> {
    await this.#seek(id)
    return await this.#credentials.change(async () => {
      const key = makeCredential('ask_')
      await this.#credentials.store(id, () => this.#rotated(this.#stored(id), key, overlap_seconds))
      return { ...this.#shown(this.#stored(id)), key }
    })
  }

  /** Ends its streams immediately. Throws `key_not_found`. */
  async revoke(id: string): Promise<void> {
    await this.#seek(id)
    await this.#credentials.change(() => this.#credentials.store(id, () => void this.#stored(id)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#expiry)
    await this.#credentials[Symbol.asyncDispose]()
  }

  #rotated(storedKey: StoredKey, key: string, overlapSeconds: number): StoredKey {
    const [current, ...older] = storedKey.credentials
    const until = new Date(this.#now() + overlapSeconds * 1000).toISOString()
    const overlapping = older.filter(({ expires_at }) => timeOf(expires_at) > this.#now())
    const previous = current && overlapSeconds > 0 ? [{ ...current, expires_at: until }, ...overlapping] : []
    return {
      ...storedKey,
      prefix: key.slice(0, PREFIX_CHARS),
      credentials: [{ hash: hashCredential(key) }, ...previous].slice(0, MAX_CREDENTIALS),
    }
  }

  /** Updates `#known` from the stored keys; ends what is no longer valid. */
  #learn(): void {
    const before = this.#keysByHash
    this.#keysByHash = new Map()
    for (const key of this.#credentials.all.values()) {
      for (const credential of key.credentials) {
        const until = Math.min(timeOf(key.expires_at), timeOf(credential.expires_at))
        if (until <= this.#now()) continue
        const knownKey = before.get(credential.hash)
        this.#keysByHash.set(credential.hash, knownKey ? { ...knownKey, until } : knownOf(key, until))
      }
    }
    for (const [hash, { end }] of before) if (!this.#keysByHash.has(hash)) end.abort()
    this.#awaitExpiry()
  }

  #awaitExpiry(): void {
    clearTimeout(this.#expiry)
    // They are not arguments of one call: there may be a hundred thousand.
    const next = this.#keysByHash.values().reduce((least, { until }) => Math.min(least, until), Infinity)
    if (next !== Infinity && !this.#isClosed) this.#wait(next)
  }

  #wait(next: number): void {
    const remainingMs = next - this.#now()
    if (remainingMs <= 0) return this.#learn()
    this.#expiry = setTimeout(() => this.#wait(next), timerMs(Math.min(remainingMs, CLOCK_CHECK_MS))).unref()
  }

  /** Asks the storage for an unknown key: another process may have made it. */
  async #seek(id: string): Promise<void> {
    if (!this.#credentials.all.has(id)) await this.#credentials.follow()
  }

  #stored(id: string): StoredKey {
    const storedKey = this.#credentials.all.get(id)
    if (storedKey) return storedKey
    throw new Problem('key_not_found', `There is no API key ${id}. GET /keys lists all of them.`)
  }

  #shown({ credentials, ...storedKey }: StoredKey): ApiKey {
    const [, ...previous] = credentials
    const until = Math.max(...previous.map(({ expires_at }) => timeOf(expires_at)))
    const usedAt = this.#credentials.usedAt(storedKey.id)
    return {
      ...storedKey,
      ...(usedAt !== undefined && { last_used_at: usedAt }),
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

function parseKey({ id, value }: StoredCredential): StoredKey {
  try {
    return StoredKey.parse(value)
  } catch (cause) {
    throw new Error(`The stored API key ${id} is damaged. Restore the data directory from a backup.`, { cause })
  }
}

const timeOf = (time: string | undefined): number => (time === undefined ? Infinity : Date.parse(time))

function knownOf({ id, name, scopes, conversations, user_id: userId, profiles }: StoredKey, until: number): KnownKey {
  const end = new AbortController()
  const limits = {
    conversations: conversations && new Set(conversations),
    userId,
    profiles: profiles && new Set(profiles),
  }
  return { keyId: id, access: new Access({ id, name }, scopes, limits, end.signal), end, until }
}
