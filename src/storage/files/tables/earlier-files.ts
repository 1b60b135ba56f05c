/** Reads what is in the tables now from the files of earlier versions: data directories of the formats 1 and 2. */
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { ignoreMissing } from '../../../lib/error-code.ts'
import { mapBounded } from '../../../lib/map-bounded.ts'
import type { CreationKey, StoredCredential } from '../../storage.ts'
import { DataDirectoryError } from '../directory/data-lock.ts'
import { listIds } from '../directory/mark-files.ts'

const [KEYS, DELETED, SHARED] = ['keys.json', 'deleted', 'shared-workdirs'] as const
export const EARLIER: readonly string[] = [KEYS, DELETED, SHARED]

/** What a key says is checked by its reader. */
const ApiKey = z.looseObject({ id: z.uuid(), last_used_at: z.iso.datetime().optional() })
const KeyFile = z.object({ version: z.literal(1), keys: z.array(ApiKey) })
const CreatedKey = z.object({ key: z.string(), bodyHash: z.string(), id: z.uuid(), at: z.iso.datetime() })

/** Files read concurrently. */
const CONCURRENCY = 64

type EarlierFiles = {
  readonly apiKeys: readonly StoredCredential[]
  readonly deletions: readonly { readonly id: string; readonly key: CreationKey | undefined }[]
  /** `hash`: of the path of the workdir. */
  readonly sharedWorkdirs: readonly { readonly hash: string; readonly id: string }[]
}

/** What does not exist is empty. Throws if something cannot be read: it would be lost. */
export async function readEarlierFiles(directory: string): Promise<EarlierFiles> {
  const [keys, deletedPath, sharedPath] = [join(directory, KEYS), join(directory, DELETED), join(directory, SHARED)]
  const names = new Set(await namesIn(deletedPath))
  const ids = names.size > 0 ? await listIds(deletedPath) : []
  return {
    apiKeys: await readKeyFile(keys),
    deletions: await mapBounded(ids, CONCURRENCY, async (id) => ({
      id,
      key: names.has(`${id}.key`) ? readCreated(await readFile(join(deletedPath, `${id}.key`), 'utf8')) : undefined,
    })),
    sharedWorkdirs: await readShared(sharedPath),
  }
}

async function readKeyFile(path: string): Promise<StoredCredential[]> {
  const text = await readFile(path, 'utf8').catch(ignoreMissing)
  if (text === undefined) return []
  try {
    const { keys } = KeyFile.parse(JSON.parse(text))
    return keys.map(({ last_used_at: usedAt, ...value }) => ({ id: value.id, value, usedAt }))
  } catch (cause) {
    const advice = 'Restore it from a backup, or remove it to revoke all API keys.'
    throw new DataDirectoryError(`${path} is damaged. ${advice}`, { cause })
  }
}

/** Returns undefined for a torn file. */
function readCreated(text: string): CreationKey | undefined {
  try {
    return CreatedKey.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

async function readShared(directory: string): Promise<{ hash: string; id: string }[]> {
  const hashes = (await namesIn(directory)).filter((name) => /^[0-9a-f]{64}$/.test(name))
  const all = await mapBounded(hashes, CONCURRENCY, async (hash) =>
    (await listIds(join(directory, hash))).map((id) => ({ hash, id })),
  )
  return all.flat()
}

const namesIn = async (directory: string): Promise<string[]> => (await readdir(directory).catch(ignoreMissing)) ?? []
