/** Writes to the tables of a data directory until that fails, and prints the code of the error, and what is stored. */
import { openTables } from '../../../../src/storage/files/tables/open-tables.ts'
import { step } from '../../../../src/storage/files/tables/tables.ts'
import { isOutOfRoom } from '../../../../src/lib/error-code.ts'

const directory = process.argv[2]!
await using tables = await openTables(directory, { format: undefined, raiseFormat: async () => {} })
const value = 'x'.repeat(10_000)
const fill = async (stored: number): Promise<{ stored: number; fault: unknown }> => {
  try {
    await tables.write(step('INSERT INTO api_keys (id, value) VALUES (?, ?)', `key ${stored}`, value))
  } catch (fault) {
    return { stored, fault }
  }
  return await fill(stored + 1)
}
const { stored, fault } = await fill(0)
const [row] = await tables.read('SELECT count(*) AS count FROM api_keys')
process.stdout.write(JSON.stringify({ isOutOfRoom: isOutOfRoom(fault), lost: stored - Number(row?.['count']) }))
