/**
 * Logins: how a browser uses a key without keeping it. A login has two halves, a cookie and a value for a header, and works
 * with both only: a cookie of this host is sent to the servers on its other ports, too. A hash of the pair is stored. It has
 * the permissions of its key, or fewer, and ends with it. Loaded with the first login.
 */
import { z } from 'zod'
import { Scope } from '../contract/key.ts'
import type { Login } from '../contract/login.ts'
import { LOGIN_IDLE_MS, LOGIN_LIFETIME_MS } from '../contract/login.ts'
import { Problem } from '../contract/problem.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { TicketTable } from '../storage/instances.ts'
import type { CredentialTable } from '../storage/storage.ts'
import { Access } from './access.ts'
import type { ApiKeys } from './api-keys.ts'
import { hashCredential, makeCredential } from './credential.ts'
import { KeptCredentials } from './kept-credentials.ts'
import type { Codes, LoginOrigin } from './login-codes.ts'
import { LoginCodes, Origin } from './login-codes.ts'

const MAX_LOGINS = 10_000
/** A login above it ends the login of the key that was unused for longest. */
const MAX_LOGINS_PER_KEY = 100
/** How often logins that are over are removed, and their streams end. */
const SWEEP_MS = 60_000
const USER_AGENT_CHARS = 200

const StoredLogin = z.object({
  id: z.uuid(),
  origin: Origin,
  scopes: z.array(Scope),
  hash: z.string(),
  user_agent: z.string().optional(),
  created_at: z.iso.datetime(),
})
type StoredLogin = z.infer<typeof StoredLogin>

export type LoginsOptions = {
  readonly table: CredentialTable
  readonly apiKeys: Pick<ApiKeys, 'findHashed' | 'isValid'>
  /** The keyed hashes of the valid master keys; logins of others end. */
  readonly masterHashes: readonly string[]
  readonly hashMaster: (key: string) => string
  /** Other instances share the table. */
  readonly isShared: boolean
  /** Has the one-time codes of all instances. */
  readonly codeTable?: TicketTable | undefined
  readonly now?: () => number
}

export type NewLogin = {
  readonly origin: LoginOrigin
  /** The access of the key. */
  readonly access: Access
  readonly scopes: readonly Scope[] | undefined
  readonly userAgent: string | undefined
}

type RequestGrant = { readonly of: Access; readonly access: Access; readonly end: AbortController }

export class Logins implements AsyncDisposable {
  #codes: Codes
  readonly #options: LoginsOptions
  readonly #now: () => number
  readonly #credentials: KeptCredentials<StoredLogin>
  #byHash: ReadonlyMap<string, StoredLogin> = new Map()
  /** The permissions that were given to requests of each login. */
  readonly #grants = new Map<string, RequestGrant>()
  readonly #master = Access.master()
  readonly #sweep: NodeJS.Timeout

  private constructor(options: LoginsOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#codes = new LoginCodes(this.#now)
    const { table } = options
    // A login whose row is damaged has ended: its user logs in again.
    const parse = ({ value }: { readonly value: unknown }) => StoredLogin.safeParse(value).data
    this.#credentials = new KeptCredentials({ table, now: this.#now, parse, onChange: (all) => this.#learn(all) })
    this.#sweep = setInterval(() => void this.#endOver(), SWEEP_MS).unref()
    if (options.isShared) this.#credentials.watch()
  }

  static async open(options: LoginsOptions): Promise<Logins> {
    const logins = new Logins(options)
    const { codeTable: table } = options
    if (table) {
      const { SharedLoginCodes } = await import('./shared-login-codes.ts')
      logins.#codes = new SharedLoginCodes({ table, accessOf: (origin) => logins.#accessOf(origin) })
    }
    await logins.#credentials.read()
    return logins
  }

  get codes(): Codes {
    return this.#codes
  }

  /** `token`: the key of a request, with these permissions. A local credential counts as the first master key. */
  originOf(token: string, { key }: Access): LoginOrigin {
    if (key) return { kind: 'api_key', ...key, hash: hashCredential(token) }
    const { masterHashes, hashMaster } = this.#options
    const hash = hashMaster(token)
    return { kind: 'master', hash: masterHashes.includes(hash) ? hash : (masterHashes[0] ?? hash) }
  }

  /** Throws `forbidden` for scopes that the key lacks. */
  async create({ origin, access, scopes, userAgent }: NewLogin) {
    access.require(...(scopes ?? []))
    const [value, cookie] = [makeCredential('asv_'), makeCredential('asw_')]
    const storedLogin: StoredLogin = {
      id: uuid7(),
      origin,
      scopes: Scope.options.filter((scope) => (scopes ? scopes.includes(scope) : access.allows(scope))),
      hash: hashPair(value, cookie),
      ...(userAgent !== undefined && { user_agent: userAgent.slice(0, USER_AGENT_CHARS) }),
      created_at: new Date(this.#now()).toISOString(),
    }
    await this.#credentials.change(async () => {
      await this.#makeRoom(origin)
      await this.#credentials.store(storedLogin.id, () => storedLogin)
    })
    return { login: this.#shown(storedLogin, storedLogin.id), value, cookie }
  }

  /** `cookies`: others of the same name may come from a server on another port. Returns undefined for an invalid login. */
  async find(value: string, cookies: readonly string[]): Promise<Access | undefined> {
    const hashes = cookies.map((cookie) => hashPair(value, cookie))
    return await this.#find(() => hashes.map((hash) => this.#byHash.get(hash)).find((login) => login !== undefined))
  }

  /** Finds the login of a ticket, which another instance may have issued. */
  async findById(id: string): Promise<Access | undefined> {
    return await this.#find(() => this.#credentials.all.get(id))
  }

  async #find(knownLogin: () => StoredLogin | undefined): Promise<Access | undefined> {
    if (!knownLogin()) await this.#credentials.follow()
    if (this.#needsUses(knownLogin())) await this.#credentials.readUses()
    const login = knownLogin()
    if (!login || this.#isOver(login)) return undefined
    const of = await this.#accessOf(login.origin)
    // It may have ended while its key was looked up.
    if (!of || !this.#credentials.all.has(login.id)) return undefined
    this.#credentials.noteUse(login.id)
    return this.#give(login, of)
  }

  /** Returns the logins that the asking credential may end. */
  async list(access: Access): Promise<Login[]> {
    await this.#credentials.upToDate()
    const visible = [...this.#credentials.all.values()].filter((login) => mayEnd(access, login) && !this.#isOver(login))
    return visible.map((login) => this.#shown(login, access.loginId))
  }

  /** Its streams end immediately. Throws `login_not_found`. */
  async end(access: Access, id: string): Promise<void> {
    // Another instance may have made it.
    if (!this.#credentials.all.has(id)) await this.#credentials.follow()
    await this.#credentials.change(() =>
      this.#credentials.store(id, () => {
        const login = this.#credentials.all.get(id)
        if (login && mayEnd(access, login)) return undefined
        throw new Problem('login_not_found', `There is no login ${id}. GET /logins lists those that you can end.`)
      }),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#sweep)
    await this.#credentials[Symbol.asyncDispose]()
  }

  async #accessOf(origin: LoginOrigin): Promise<Access | undefined> {
    if (origin.kind === 'api_key') return await this.#options.apiKeys.findHashed(origin.hash)
    return this.#options.masterHashes.includes(origin.hash) ? this.#master : undefined
  }

  #give(login: StoredLogin, of: Access): Access {
    const knownGrant = this.#grants.get(login.id)
    if (knownGrant?.of === of) return knownGrant.access
    const end = knownGrant?.end ?? new AbortController()
    const access = of.forLogin(login.id, login.scopes, AbortSignal.any([of.ended, end.signal]))
    this.#grants.set(login.id, { of, access, end })
    return access
  }

  #learn(all: ReadonlyMap<string, StoredLogin>): void {
    this.#byHash = new Map([...all.values()].map((login) => [login.hash, login]))
    for (const id of this.#grants.keys()) if (!all.has(id)) this.#abort(id)
  }

  #abort(id: string): void {
    this.#grants.get(id)?.end.abort()
    this.#grants.delete(id)
  }

  #isOver({ id, origin, created_at }: StoredLogin): boolean {
    const [createdMs, usedMs] = [created_at, this.#credentials.usedAt(id) ?? created_at].map((time) => Date.parse(time))
    const isOld = this.#now() >= Math.min(Number(createdMs) + LOGIN_LIFETIME_MS, Number(usedMs) + LOGIN_IDLE_MS)
    const { apiKeys, masterHashes } = this.#options
    const hasKey = origin.kind === 'api_key' ? apiKeys.isValid(origin.hash) : masterHashes.includes(origin.hash)
    return isOld || !hasKey
  }

  /** Returns true if it only seems to be over: another instance may have noted a later use. */
  readonly #needsUses = (login: StoredLogin | undefined): boolean =>
    login !== undefined && this.#options.isShared && this.#isOver(login)

  /** Throws no error: a login that is over is refused, and its row is removed later. */
  async #endOver(): Promise<void> {
    const over = () => [...this.#credentials.all.values()].filter((login) => this.#isOver(login))
    if (
      over().some(this.#needsUses) &&
      !(await this.#credentials.readUses().then(
        () => true,
        () => false,
      ))
    )
      return
    for (const { id } of over()) {
      this.#abort(id)
      await this.#credentials.change(() => this.#credentials.store(id, () => undefined)).catch(() => {})
    }
  }

  /** Throws `limit_reached`. */
  async #makeRoom(origin: LoginOrigin): Promise<void> {
    const all = [...this.#credentials.all.values()]
    const lastUse = ({ id, created_at }: StoredLogin) => this.#credentials.usedAt(id) ?? created_at
    const own = all.filter((login) => isOfSameKey(login.origin, origin))
    const [oldest] = own.toSorted((one, other) => lastUse(one).localeCompare(lastUse(other)))
    if (oldest && own.length >= MAX_LOGINS_PER_KEY) return await this.#credentials.store(oldest.id, () => undefined)
    if (all.length < MAX_LOGINS) return
    throw new Problem('limit_reached', `There are already ${MAX_LOGINS} logins. End some with DELETE /logins/{id}.`)
  }

  #shown({ id, origin, scopes, user_agent, created_at }: StoredLogin, current: string | undefined): Login {
    const usedAt = this.#credentials.usedAt(id)
    return {
      id,
      kind: origin.kind,
      ...(origin.kind === 'api_key' && { key_id: origin.id, name: origin.name }),
      scopes,
      ...(user_agent !== undefined && { user_agent }),
      created_at,
      ...(usedAt !== undefined && { last_used_at: usedAt }),
      expires_at: new Date(Date.parse(created_at) + LOGIN_LIFETIME_MS).toISOString(),
      is_current: id === current,
    }
  }
}

/** An administrator may end all; others those of their key that allow no more than they may do themselves. */
function mayEnd(access: Access, { id, origin, scopes }: StoredLogin): boolean {
  if (access.allows('admin') || access.loginId === id) return true
  const isOfKey = origin.kind === 'api_key' ? access.key?.id === origin.id : access.key === undefined
  return isOfKey && scopes.every((scope) => access.allows(scope))
}

const isOfSameKey = (one: LoginOrigin, other: LoginOrigin): boolean =>
  one.kind === 'api_key' ? other.kind === 'api_key' && one.id === other.id : other.kind === 'master'

const hashPair = (value: string, cookie: string): string => hashCredential(`${value} ${cookie}`)
