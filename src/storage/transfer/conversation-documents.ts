/** What a conversation has in addition to its events, in files and in rows: secrets and callbacks, and the records of commands. */
import { readFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../lib/durable-file.ts'
import { CommandRecordFiles } from '../files/command-record-files.ts'
import type { PostgresDatabase } from '../postgres/database.ts'

/** Whatever follows the name says that a value was set aside. Snapshots are caches, and not copied. */
const FORMS = [
  { file: 'secrets.enc', document: 'secrets', encoding: 'base64' },
  { file: 'callbacks.json', document: 'callbacks', encoding: 'utf8' },
] as const
const ASIDE = /^(?:\.(?:damaged|unreadable)(?:-\d+)?)?$/

/** The text of each row, by its name. */
type Documents = ReadonlyMap<string, string>

/**
 * Stores what the directory of a conversation has, and changes nothing that is there. Returns the names of what is there and
 * different.
 */
export async function importDocuments(database: PostgresDatabase, id: string, directory: string): Promise<string[]> {
  const documents = await readDocumentFiles(directory)
  const commands = await readCommandFiles(directory)
  await database.write(INSERT_DOCUMENTS, [id, ...columnsOf(documents)], 'cache')
  await database.write(INSERT_COMMANDS, [id, ...columnsOf(commands)], 'cache')
  return [
    ...differences(documents, await readDocumentRows(database, id)),
    ...differences(commands, await readCommandRows(database, id)),
  ]
}

/** Makes the files of a conversation what its rows are. */
export async function exportDocuments(database: PostgresDatabase, id: string, directory: string): Promise<void> {
  const documents = await readDocumentRows(database, id)
  const names = new Set<string>()
  for (const [name, value] of documents) {
    const form = FORMS.find(({ document }) => name.startsWith(document))
    if (!form) continue
    const file = form.file + name.slice(form.document.length)
    names.add(file)
    await replaceFile(join(directory, file), Buffer.from(value, form.encoding))
  }
  for (const { name } of await documentFiles(directory)) if (!names.has(name)) await rm(join(directory, name))
  await exportCommands(database, id, directory)
}

async function exportCommands(database: PostgresDatabase, id: string, directory: string): Promise<void> {
  const commands = await readCommandRows(database, id)
  const files = new CommandRecordFiles(join(directory, 'commands'))
  for (const entry of await files.entries()) if (!commands.has(nameOf(entry))) await files.remove(entry)
  for (const [name, record] of commands) {
    const [command = '', keyHash] = name.split('.')
    await files.write({ id: command, keyHash }, JSON.parse(record), { durable: true })
  }
}

async function readDocumentFiles(directory: string): Promise<Documents> {
  const foundDocuments = new Map<string, string>()
  for (const { name, form } of await documentFiles(directory)) {
    const content = await readFile(join(directory, name))
    foundDocuments.set(form.document + name.slice(form.file.length), content.toString(form.encoding))
  }
  return foundDocuments
}

async function documentFiles(directory: string) {
  const names = await readdir(directory)
  return names.flatMap((name) => {
    const form = FORMS.find(({ file }) => name.startsWith(file) && ASIDE.test(name.slice(file.length)))
    return form ? [{ name, form }] : []
  })
}

async function readCommandFiles(directory: string): Promise<Documents> {
  const files = new CommandRecordFiles(join(directory, 'commands'))
  const foundDocuments = new Map<string, string>()
  for (const entry of await files.entries()) {
    // Undefined if a power failure has torn it: the server ignores it, too.
    const record = await files.read(entry)
    if (record !== undefined) foundDocuments.set(nameOf(entry), JSON.stringify(record))
  }
  return foundDocuments
}

async function readDocumentRows(database: PostgresDatabase, id: string): Promise<Documents> {
  return textsOf(await database.read(DOCUMENTS, [id]))
}

async function readCommandRows(database: PostgresDatabase, id: string): Promise<Documents> {
  return textsOf(await database.read(COMMANDS, [id]))
}

const textsOf = (rows: readonly Readonly<Record<string, unknown>>[]): Documents =>
  new Map(rows.map(({ name, value }) => [String(name), String(value)]))

const nameOf = ({ id, keyHash }: { readonly id: string; readonly keyHash: string | undefined }): string =>
  keyHash === undefined ? id : `${id}.${keyHash}`

const columnsOf = (documents: Documents): [string[], string[]] => [[...documents.keys()], [...documents.values()]]

const differences = (wantedDocuments: Documents, foundDocuments: Documents): string[] => [
  ...Array.from(wantedDocuments).flatMap(([name, value]) => (foundDocuments.get(name) === value ? [] : [name])),
  ...Array.from(foundDocuments.keys()).filter((name) => !wantedDocuments.has(name)),
]

const INSERT_DOCUMENTS = `
  insert into documents select $1, d.* from unnest($2::text[], $3::text[]) d on conflict do nothing`
const INSERT_COMMANDS = `
  insert into commands select $1, split_part(c.name, '.', 1), nullif(split_part(c.name, '.', 2), ''), c.record
  from unnest($2::text[], $3::text[]) c(name, record) on conflict do nothing`
const DOCUMENTS = "select name, value from documents where conversation_id = $1 and name <> 'snapshot' order by name"
const COMMANDS = `
  select id || coalesce('.' || key_hash, '') as name, record as value from commands where conversation_id = $1 order by id`
