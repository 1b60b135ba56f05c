/**
 * Stores the records of a conversation's commands, one file each, with the command's output in two more files. No rows of
 * `tables.db`: they go with the directory of their conversation, by one removal, and no command waits for those of others.
 */
import { readFile, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeDirectories } from '../../files/make-directories.ts'
import { replaceFile } from '../../lib/durable-file.ts'
import { ignoreMissing } from '../../lib/error-code.ts'
import type { CommandEntry, CommandStorage } from '../storage.ts'

const STREAMS = ['stdout', 'stderr'] as const
type Stream = (typeof STREAMS)[number]

export class CommandRecordFiles implements CommandStorage {
  readonly directory: string
  #isMade = false

  /** Creates `directory` on first use. */
  constructor(directory: string) {
    this.directory = directory
  }

  async entries(): Promise<CommandEntry[]> {
    const names = (await readdir(this.directory).catch(ignoreMissing)) ?? []
    return names.flatMap(parseName).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  async read(entry: CommandEntry): Promise<unknown> {
    return parseJson(await readFile(this.#pathOf(entry), 'utf8').catch(ignoreMissing))
  }

  async write(entry: CommandEntry, record: unknown, options: { readonly durable: boolean }): Promise<void> {
    if (!this.#isMade) await makeDirectories(this.directory, 0o700)
    this.#isMade = true
    await replaceFile(this.#pathOf(entry), JSON.stringify(record), options)
  }

  async remove(entry: CommandEntry): Promise<void> {
    for (const path of [...this.#outputsOf(entry.id), this.#pathOf(entry)]) await rm(path, { force: true })
  }

  outputPath(id: string, stream: Stream): string {
    return join(this.directory, `${id}.${stream}`)
  }

  async outputBytes(ids: readonly string[]): Promise<number> {
    const sizes = await Promise.all(ids.flatMap((id) => this.#outputsOf(id)).map(sizeOf))
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  #outputsOf(id: string): string[] {
    return STREAMS.map((stream) => this.outputPath(id, stream))
  }

  /** The name contains everything needed to find the record. */
  #pathOf({ id, keyHash }: CommandEntry): string {
    return join(this.directory, keyHash === undefined ? `${id}.json` : `${id}.${keyHash}.json`)
  }
}

function parseName(name: string): CommandEntry[] {
  const [, id, keyHash] = /^([0-9a-f-]{36})(?:\.([0-9a-f]{16}))?\.json$/.exec(name) ?? []
  return id === undefined ? [] : [{ id, keyHash }]
}

function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '')
  } catch {
    return undefined
  }
}

const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0, // it wrote nothing
  )
