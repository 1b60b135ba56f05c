/** One connection to PostgreSQL, for one statement at a time. The only file that knows the driver. */
import { Socket } from 'node:net'
import { Client, escapeLiteral, types } from 'pg'
import { afterRunning } from '../../lib/bounded-wait.ts'
import {
  DatabaseError,
  LostConnection,
  LostStatement,
  endsSession,
  faultOfConnection,
  isDefect,
  isReadOnly,
} from './database-errors.ts'

export type PostgresRow = Readonly<Record<string, unknown>>

export type PostgresSessionOptions = {
  /** The URLs, one for each host of the settings, in order. */
  readonly urls: readonly string[]
  /** Parameters of the session, such as `synchronous_commit`. */
  readonly parameters?: Readonly<Record<string, string>>
  /** The URLs may lead to a pooler that gives each transaction another connection: no parameter of the session is set then. */
  readonly isPooled?: boolean
}

/** Identifies a session of the server: its process ids repeat. */
export type SessionIdentity = { readonly pid: number; readonly startedAt: string }

/** The oldest version with what is used here: LZ4, and `pg_terminate_backend` that waits. */
const OLDEST_VERSION = 14

const CONNECT_MS = 5000

/** A machine that was switched off sends nothing: the server notices it after 25 seconds. */
const PARAMETERS = {
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
  timezone: 'UTC',
}

/** OID of bigint: positions, which are far below 2^53. */
const INT8 = 20
const parserOf: typeof types.getTypeParser = (oid: number, format?: unknown) =>
  // oxlint-disable-next-line typescript/no-unsafe-return, typescript/no-unsafe-type-assertion -- the driver has no types for what parsers return
  oid === INT8 ? Number : types.getTypeParser(oid, format as 'text')

export class PostgresSession {
  readonly #client: Client
  readonly #socket: Socket
  #identity: SessionIdentity | undefined
  #fault: Error | undefined

  /** Connects to the first host that accepts writes. Rejects with the error of the last host. */
  static async connect({ urls, parameters, isPooled = false }: PostgresSessionOptions): Promise<PostgresSession> {
    let fault: unknown
    for (const url of urls) {
      const session = new PostgresSession(url)
      try {
        await session.#begin(isPooled ? undefined : { ...PARAMETERS, ...parameters })
        return session
      } catch (error) {
        session.#break(error)
        if (error instanceof DatabaseError) throw error
        fault = error
      }
    }
    throw fault
  }

  private constructor(url: string) {
    const socket = (this.#socket = new Socket())
    this.#client = new Client({
      connectionString: url,
      application_name: 'agent-server',
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      types: { getTypeParser: parserOf },
      stream: () => socket,
    })
    this.#client.on('error', (error) => (this.#fault ??= faultOfConnection(error)))
    this.#client.on('end', () => (this.#fault ??= new LostConnection('The connection to the database has ended.')))
  }

  /** Undefined while it connects, and behind a pooler that gives each transaction another connection. */
  get identity(): SessionIdentity | undefined {
    return this.#identity
  }

  /** False if a pooler is between: it numbers its connections itself. */
  get isDirect(): boolean {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the driver has it, and its types do not
    return (this.#client as unknown as { readonly processID: number | null }).processID === this.#identity?.pid
  }

  onClosed(listener: () => void): void {
    this.#socket.once('close', listener)
  }

  /** True if no statement can be sent any more. */
  get isBroken(): boolean {
    return this.#fault !== undefined
  }

  /**
   * Rejects with the error of the server, which then has changed nothing; or with a `LostStatement` if the connection broke
   * or there is no answer within `timeoutMs`, or with a `LostConnection` if it was broken before: the session is broken then.
   */
  async run(text: string, values: readonly unknown[], timeoutMs: number): Promise<PostgresRow[]> {
    if (this.#fault) throw this.#fault
    const cancel = afterRunning(timeoutMs, () => this.#socket.destroy())
    try {
      // It may be several statements if there are no values.
      const result = await this.#client.query<PostgresRow>(values.length > 0 ? { text, values: [...values] } : text)
      return result.rows
    } catch (error) {
      if (isReadOnly(error)) this.#break(error)
      if (!endsSession(error)) throw error
      this.#break(error)
      if (isDefect(error)) throw error
      throw new LostStatement('The connection to the database broke.', { cause: error })
    } finally {
      cancel()
    }
  }

  /** Calls `onNotice` for each notification of this channel, until the session ends. Rejects as `run` does. */
  async listen(channel: string, onNotice: () => void, timeoutMs: number): Promise<void> {
    this.#client.on('notification', (notice) => {
      if (notice.channel === channel) onNotice()
    })
    await this.run(`listen ${channel}`, [], timeoutMs)
  }

  /** Closes the connection. A statement in progress is lost. */
  async end(): Promise<void> {
    if (this.#fault) return
    this.#fault = new LostConnection('This connection was closed.')
    const cancel = afterRunning(CONNECT_MS, () => this.#socket.destroy())
    await this.#client.end().catch(() => {}) // the connection is gone, too
    cancel()
  }

  async #begin(parameters: Readonly<Record<string, string>> | undefined): Promise<void> {
    await this.#client.connect().catch((error: unknown) => {
      throw faultOfConnection(error)
    })
    const set = Object.entries(parameters ?? {}).map(([name, value]) => `set ${name} = ${escapeLiteral(value)}`)
    if (set.length > 0) await this.run(set.join(';'), [], CONNECT_MS)
    const [identityRow] = await this.run(IDENTIFY, [OLDEST_VERSION], CONNECT_MS)
    if (identityRow?.['is_read_only']) throw Object.assign(new Error('This host is read-only.'), { code: '25006' })
    if (identityRow?.['is_old'])
      throw new DatabaseError(`PostgreSQL ${String(identityRow['version'])} is too old. Use PostgreSQL 14 or newer.`)
    if (parameters)
      this.#identity = { pid: Number(identityRow?.['pid']), startedAt: String(identityRow?.['started_at']) }
  }

  #break(error: unknown): void {
    this.#fault ??= faultOfConnection(error)
    this.#socket.destroy()
  }
}

const IDENTIFY = `
  select pg_backend_pid() as pid, session.backend_start::text as started_at,
    current_setting('server_version') as version,
    current_setting('server_version_num')::integer < $1::integer * 10000 as is_old,
    pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as is_read_only
  from pg_stat_get_activity(pg_backend_pid()) session`
