/** The keys that encrypt stored data, as rows that are encrypted with the operator's keys. */
import { openKeys } from '../shared/key-list.ts'
import type { KeyMaterial } from '../../security/sealer.ts'
import type { DataKeys } from '../storage.ts'
import { DatabaseError } from './database-errors.ts'
import type { PostgresSession } from './session.ts'

/** Any number that other programs are unlikely to use. */
const KEYS_LOCK = 7_236_841_102

/**
 * Does what `openDataKeys` of files does, and two instances that start at the same time make one key. Throws a
 * `DatabaseError` if there are keys and none can be decrypted: the server of another key has written the data.
 */
export async function openDatabaseKeys(session: PostgresSession, operatorKeys: KeyMaterial): Promise<DataKeys> {
  const run = (text: string, values: readonly unknown[] = []) => session.run(text, values, 60_000)
  await run('select pg_advisory_lock($1)', [KEYS_LOCK])
  const rows = await run('select sealed from data_keys order by number')
  const { sealed, keys, isChanged } = openKeys(
    rows.map((row) => String(row['sealed'])),
    operatorKeys,
  )
  if (rows.length > 0 && keys.locked === rows.length)
    throw new DatabaseError(
      'The data of the database was encrypted with another secret key. Start the server with that key: as OPENHANDS_SECRET_KEY, or as the old master key after a comma. If it is lost, delete the rows of the table data_keys: the stored secrets are then lost, too.',
    )
  if (isChanged) await run(REPLACE, [sealed])
  await run('select pg_advisory_unlock($1)', [KEYS_LOCK])
  return keys
}

const REPLACE = `
  insert into data_keys (number, sealed) select n, s from unnest($1::text[]) with ordinality k(s, n)
  on conflict (number) do update set sealed = excluded.sealed`
