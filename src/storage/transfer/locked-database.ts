/** A database that no server uses while data is copied into it or out of it. */
import { PostgresDatabase } from '../postgres/database.ts'
import { connectFirst } from '../postgres/first-connection.ts'
import { lockDatabase } from '../postgres/incarnation.ts'
import { migrate, readIdentity } from '../postgres/schema.ts'
import type { PostgresSession } from '../postgres/session.ts'
import { TransferError } from './transfer-error.ts'

export type LockedDatabase = AsyncDisposable & {
  readonly database: PostgresDatabase
  /** Has the lock. */
  readonly session: PostgresSession
  /** Throws a `TransferError` if the lock was lost: a server may have started. */
  readonly requireLock: () => Promise<void>
}

const OUTAGE_MS = 30_000
const STATEMENT_MS = 10_000

/** Throws a `DatabaseError` if it cannot be used, or a `TransferError` if a server has used it. Makes its tables. */
export async function openNewDatabase(url: string): Promise<LockedDatabase> {
  return await openLocked(url, async (session) => {
    if (!(await wasUsed(session))) return
    throw new TransferError('A server has used this database. Import into an empty one, or export it first.')
  })
}

/**
 * Throws a `DatabaseError` if it cannot be used, or a `TransferError` if it has nothing to export: no server has used it, and
 * `isImported`, which is called with its identity, resolves to false.
 */
export async function openUsedDatabase(
  url: string,
  isImported: (identity: string | undefined) => Promise<boolean>,
): Promise<LockedDatabase> {
  return await openLocked(url, async (session) => {
    if ((await wasUsed(session)) || (await isImported(await readIdentity(session)))) return
    throw new TransferError('The database has no data of a server.')
  })
}

async function openLocked(url: string, check: (session: PostgresSession) => Promise<void>): Promise<LockedDatabase> {
  await using openedParts = new AsyncDisposableStack()
  const database = openedParts.use(new PostgresDatabase({ url, outageMs: OUTAGE_MS }))
  const session = await connectFirst(database)
  openedParts.defer(() => session.end())
  await lockDatabase(session, 'alone')
  await check(session)
  await migrate(session)
  const heldParts = openedParts.move()
  const requireLock = async () => {
    await session.run('select', [], STATEMENT_MS).catch((cause: unknown) => {
      throw new TransferError('The connection that had the lock of the database broke. Run the command again.', {
        cause,
      })
    })
  }
  return { database, session, requireLock, [Symbol.asyncDispose]: () => heldParts.disposeAsync() }
}

async function wasUsed(session: PostgresSession): Promise<boolean> {
  if ((await readIdentity(session)) === undefined) return false
  const [row] = await session.run('select exists (select from incarnations) as is_used', [], STATEMENT_MS)
  return row?.['is_used'] === true
}
