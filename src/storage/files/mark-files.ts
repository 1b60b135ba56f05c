/**
 * Sets of conversations, as directories with an empty file for each; files of deleted conversations contain their keys.
 */
import { readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { codeOf } from '../../lib/error-code.ts'
import { syncDirectory } from '../../lib/durable-file.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import type { CreationKey, Deletions, Marks } from '../storage.ts'
import { shareNext } from './log/shared-calls.ts'

/** `directory` exists and is durable. */
export class MarkFiles implements Marks {
  readonly #directory: string
  /** Many runs that start at the same time wait for the same sync. */
  readonly #sync: () => Promise<void>

  constructor(directory: string) {
    this.#directory = directory
    this.#sync = shareNext(() => syncDirectory(directory))
  }

  async set(id: string): Promise<void> {
    await touch(this.#directory, id)
    await this.#sync()
  }

  clear(id: string): Promise<void> {
    return rm(join(this.#directory, id), { force: true })
  }

  ids(): Promise<string[]> {
    return listIds(this.#directory)
  }
}

const Key = z.object({ key: z.string(), bodyHash: z.string(), id: z.uuid(), at: z.iso.datetime() })

/** A suffix to the id of a deleted conversation; the marks themselves have none. */
const KEY_SUFFIX = '.key'

/** Files read concurrently. */
const READ_CONCURRENCY = 64

/** `directory` exists and is durable. */
export class DeletionFiles implements Deletions {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async mark(id: string, key?: CreationKey): Promise<void> {
    const path = join(this.#directory, `${id}${KEY_SUFFIX}`)
    // Written before the mark, and synced with it.
    if (key) await writeFile(path, JSON.stringify(key), { mode: 0o600, flush: true })
    await touchDurably(this.#directory, id)
  }

  has(id: string): Promise<boolean> {
    return exists(join(this.#directory, id))
  }

  ids(): Promise<string[]> {
    return listIds(this.#directory)
  }

  async keys(after: number): Promise<CreationKey[]> {
    const names = (await readdir(this.#directory)).filter((name) => name.endsWith(KEY_SUFFIX))
    const keys = await mapBounded(names, READ_CONCURRENCY, async (name) => {
      const path = join(this.#directory, name)
      const key = parseKey(await readFile(path, 'utf8'))
      if (key && Date.parse(key.at) > after) return key
      await rm(path, { force: true })
      return undefined
    })
    return keys.filter((key) => key !== undefined)
  }
}

/** Returns undefined for a torn file: its conversation was not deleted. */
function parseKey(text: string): CreationKey | undefined {
  try {
    return Key.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Matches the id of a conversation; compiled once, because a data directory may contain a hundred thousand names. */
const UUID = z.regexes.uuid()

/** Ignores other names. */
export async function listIds(directory: string): Promise<string[]> {
  const names = await readdir(directory)
  return names.filter((name) => UUID.test(name))
}

export async function touchDurably(directory: string, name: string): Promise<void> {
  await touch(directory, name)
  await syncDirectory(directory)
}

const touch = (directory: string, name: string): Promise<void> => writeFile(join(directory, name), '', { mode: 0o600 })

/** Throws when it cannot be known: what is only unreadable must not be taken for deleted. */
export async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) throw error
    return false
  }
}
