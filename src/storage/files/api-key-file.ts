/** The API keys in one file, which is replaced with each change. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { replaceFile } from '../../lib/durable-file.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { ApiKeyTable, StoredApiKey } from '../storage.ts'

const Key = z.looseObject({ id: z.uuid(), last_used_at: z.iso.datetime().optional() })
const KeyFile = z.object({ version: z.literal(1), keys: z.array(Key) })

export class ApiKeyFile implements ApiKeyTable {
  readonly #path: string
  #version = 1
  #keys: ReadonlyMap<string, StoredApiKey> = new Map()

  constructor(path: string) {
    this.#path = path
  }

  async read(): Promise<{ version: number; keys: readonly StoredApiKey[] }> {
    const keys = await readKeyFile(this.#path)
    this.#keys = new Map(keys.map((key) => [key.id, key]))
    return { version: this.#version, keys }
  }

  version(): Promise<number> {
    return Promise.resolve(this.#version)
  }

  async change(version: number, id: string, value: unknown): Promise<number | undefined> {
    if (version !== this.#version) return undefined
    const keys = new Map(this.#keys)
    if (value === undefined) keys.delete(id)
    else keys.set(id, { id, value, usedAt: keys.get(id)?.usedAt })
    await this.#write(keys)
    return ++this.#version
  }

  async noteUses(uses: ReadonlyMap<string, string>): Promise<void> {
    const keys = this.#keys.values().map((key) => ({ ...key, usedAt: uses.get(key.id) ?? key.usedAt }))
    await this.#write(new Map(keys.map((key) => [key.id, key])))
  }

  async #write(keys: ReadonlyMap<string, StoredApiKey>): Promise<void> {
    const stored = [...keys.values()].map(({ value, usedAt }) => ({
      ...Key.parse(value),
      ...(usedAt !== undefined && { last_used_at: usedAt }),
    }))
    await replaceFile(this.#path, `${JSON.stringify({ version: 1, keys: stored }, undefined, 2)}\n`, {
      draft: `${this.#path}.new`,
    })
    this.#keys = keys
  }
}

/** Returns nothing if there is no file. */
async function readKeyFile(path: string): Promise<StoredApiKey[]> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (codeOf(error) !== 'ENOENT') throw error
    return '{"version":1,"keys":[]}'
  })
  try {
    return KeyFile.parse(JSON.parse(text)).keys.map(({ last_used_at, ...value }) => ({
      id: value.id,
      value,
      usedAt: last_used_at,
    }))
  } catch (cause) {
    throw new Error(`${path} is damaged. Restore it from a backup, or remove it to revoke all API keys.`, { cause })
  }
}
