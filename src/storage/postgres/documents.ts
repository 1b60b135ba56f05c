/** Texts of conversations, by name: the callbacks, the sealed secrets, the snapshot. */
import type { CommandEntry, CommandStorage, StoredDocument } from '../storage.ts'
import type { PostgresDatabase } from './database.ts'
import type { RowOwnership } from './ownership.ts'
import { CommandRecordFiles } from '../files/command-record-files.ts'
import { makeDirectories } from '../../files/make-directories.ts'

/** The statement for `RowOwnership.write`, with a name and a value. Fails if the conversation does not exist. */
export const WRITE_DOCUMENT = `
  insert into documents select $1, $3, $4 from allowed
  on conflict (conversation_id, name) do update set value = excluded.value`

export async function readDocument(database: PostgresDatabase, id: string, name: string): Promise<string | undefined> {
  const text = 'select value from documents where conversation_id = $1 and name = $2'
  const [row] = await database.read(text, [id, name])
  return row && String(row['value'])
}

/** Renames the document, and returns its new name. Does nothing if the document does not exist. */
export async function setDocumentAside(
  ownership: RowOwnership,
  id: string,
  name: string,
  suffix: string,
): Promise<string> {
  const keptName = `${name}.${suffix}-${Date.now()}`
  await ownership.write(SET_ASIDE, id, [name, keptName])
  return keptName
}

const SET_ASIDE = 'update documents set name = $4 from allowed where conversation_id = $1 and name = $3'

export class JsonRow implements StoredDocument {
  readonly #ownership: RowOwnership
  readonly #id: string
  readonly #name: string

  constructor(ownership: RowOwnership, id: string, name: string) {
    this.#ownership = ownership
    this.#id = id
    this.#name = name
  }

  async read(): Promise<unknown> {
    const text = await readDocument(this.#ownership.database, this.#id, this.#name)
    if (text === undefined) return undefined
    try {
      return JSON.parse(text)
    } catch {
      return null
    }
  }

  async write(value: unknown): Promise<void> {
    await this.#ownership.write(WRITE_DOCUMENT, this.#id, [this.#name, JSON.stringify(value)])
  }

  async setAside(): Promise<string> {
    return `the table documents, under ${await setDocumentAside(this.#ownership, this.#id, this.#name, 'damaged')}`
  }
}

/** The records of commands are rows; their output is in files, which the shell writes. */
export class CommandRows implements CommandStorage {
  readonly #ownership: RowOwnership
  readonly #id: string
  readonly #outputs: CommandRecordFiles

  constructor(ownership: RowOwnership, id: string, directory: string) {
    this.#ownership = ownership
    this.#id = id
    this.#outputs = new CommandRecordFiles(directory)
  }

  get directory(): string {
    return this.#outputs.directory
  }

  async entries(): Promise<CommandEntry[]> {
    const rows = await this.#ownership.database.read(
      'select id, key_hash from commands where conversation_id = $1 order by id collate "C"',
      [this.#id],
    )
    return rows.map(({ id, key_hash: hash }) => ({
      id: String(id),
      keyHash: typeof hash === 'string' ? hash : undefined,
    }))
  }

  async read({ id }: CommandEntry): Promise<unknown> {
    const text = 'select record from commands where conversation_id = $1 and id = $2'
    const [row] = await this.#ownership.database.read(text, [this.#id, id])
    return row && JSON.parse(String(row['record']))
  }

  async write({ id, keyHash }: CommandEntry, record: unknown): Promise<void> {
    await makeDirectories(this.directory, 0o700)
    await this.#ownership.write(WRITE_COMMAND, this.#id, [id, keyHash, JSON.stringify(record)])
  }

  async remove(entry: CommandEntry): Promise<void> {
    await this.#outputs.remove(entry)
    await this.#ownership.remove(REMOVE_COMMAND, this.#id, [entry.id])
  }

  outputPath(id: string, stream: 'stdout' | 'stderr'): string {
    return this.#outputs.outputPath(id, stream)
  }

  outputBytes(ids: readonly string[]): Promise<number> {
    return this.#outputs.outputBytes(ids)
  }
}

const REMOVE_COMMAND = 'delete from commands using allowed where conversation_id = $1 and id = $3'
const WRITE_COMMAND = `
  insert into commands select $1, $3, $4, $5 from allowed
  on conflict (conversation_id, id) do update set key_hash = excluded.key_hash, record = excluded.record`
