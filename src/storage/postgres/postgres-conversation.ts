/** The rows of one conversation, and its local directory. */
import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import type { Event, EventDraft } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventStore, StoredLog } from '../../events/event-store.ts'
import { makeDirectories } from '../../files/make-directories.ts'
import { removeTree } from '../../files/trees/remove-tree.ts'
import { codeOf } from '../../lib/error-code.ts'
import type { Sealer } from '../../security/sealer.ts'
import { removeDraftsIn } from '../files/left-files.ts'
import type { CommandStorage, ConversationStorage, LastEvent, SecretValues, StoredDocument } from '../storage.ts'
import type { SnapshotRows } from './caches.ts'
import { CommandRows, JsonRow } from './documents.ts'
import { isUuid } from './is-uuid.ts'
import type { RowOwnership } from './ownership.ts'
import type { PostgresStore } from './postgres-store.ts'
import type { SecretRows } from './secret-rows.ts'

/** What all conversations share. */
export type PostgresParts = {
  readonly ownership: RowOwnership
  /** Contains one directory per conversation. */
  readonly directory: string
  /** Contains the pipes of shells, in one directory per conversation, if the others are on a shared file system. */
  readonly localDirectory: string | undefined
  readonly logs: PostgresStore
  readonly snapshots: SnapshotRows
  readonly secrets: SecretRows
  /** Throws a `Problem` if the data directory is not the locked one any more. */
  readonly requireHeld: () => Promise<void>
}

export class PostgresConversation implements ConversationStorage {
  readonly id: string
  readonly directory: string
  readonly #parts: PostgresParts
  #callbacks: StoredDocument | undefined
  #commands: CommandStorage | undefined

  constructor(parts: PostgresParts, id: string) {
    this.id = id
    this.directory = `${parts.directory}/${id}`
    this.#parts = parts
  }

  get callbacks(): StoredDocument {
    return (this.#callbacks ??= new JsonRow(this.#parts.ownership, this.id, 'callbacks'))
  }

  get commands(): CommandStorage {
    return (this.#commands ??= new CommandRows(this.#parts.ownership, this.id, `${this.directory}/commands`))
  }

  get sealer(): Sealer {
    return this.#parts.secrets.sealerFor(this.id)
  }

  async reserve(): Promise<void> {
    const { ownership, requireHeld } = this.#parts
    const { database, incarnation } = ownership
    await requireHeld()
    const [row] = await database.write(RESERVE, [this.id, randomUUID(), incarnation])
    if (!row) throw exists()
    try {
      await mkdir(this.directory, { mode: 0o700 })
    } catch (cause) {
      await ownership.remove(UNRESERVE, this.id)
      throw codeOf(cause) === 'EEXIST' ? exists(cause) : cause
    }
  }

  async exists(): Promise<boolean> {
    return isUuid(this.id) && (await this.#row(`select from conversations where id = $1`)) !== undefined
  }

  async createdAt(): Promise<string> {
    const row = await this.#row(
      'select (extract(epoch from created_at) * 1000)::bigint as ms from conversations where id = $1',
    )
    if (!row) throw new Problem('conversation_not_found', 'No conversation has this id.')
    return new Date(Number(row['ms'])).toISOString()
  }

  createLog(values: SecretValues): Promise<StoredLog> {
    const { logs, secrets } = this.#parts
    return logs.createWith(this.id, isEmpty(values) ? undefined : secrets.documentOf(this.id, values))
  }

  copyLog(events: AsyncIterable<Event>, ending: () => readonly EventDraft[]): Promise<StoredLog> {
    return this.#parts.logs.copy(this.id, events, ending)
  }

  async openLog(): ReturnType<EventStore['open']> {
    await this.#parts.requireHeld()
    const openedLog = await this.#parts.logs.open(this.id)
    // Missing if the data directory of this machine is another one than when the conversation was created.
    await makeDirectories(this.directory, 0o700)
    return openedLog
  }

  async release(): Promise<void> {
    await this.#removeLocal()
    await this.#parts.ownership.remove(RELEASE, this.id)
  }

  async lastEvent(): Promise<LastEvent | undefined> {
    const row = await this.#row('select seq, at from events where conversation_id = $1 order by seq desc limit 1')
    return row && { seq: Number(row['seq']), timestamp: new Date(Number(row['at'])).toISOString() }
  }

  readSecrets(): Promise<SecretValues> {
    return this.#parts.secrets.read(this.id)
  }

  writeSecrets(values: SecretValues): Promise<void> {
    return this.#parts.secrets.write(this.id, values)
  }

  async markCopying(): Promise<void> {
    await this.#parts.ownership.write('update conversations set is_copying = true from allowed where id = $1', this.id)
  }

  async isCopying(): Promise<boolean> {
    return (await this.#row('select from conversations where id = $1 and is_copying')) !== undefined
  }

  async removeLeft(): Promise<void> {
    await removeDraftsIn(this.directory, ['commands', 'edits'])
  }

  async remove(): Promise<void> {
    // A snapshot must not be refused for a missing conversation.
    await this.#parts.snapshots.written(this.id)
    await removeTree(this.directory)
    await this.#removeLocal()
    await this.#parts.ownership.call('remove_conversation', this.id)
  }

  /** Another instance may open it next. */
  async #removeLocal(): Promise<void> {
    const { localDirectory } = this.#parts
    // Remains do no harm: nothing reads them again.
    if (localDirectory !== undefined) await removeTree(`${localDirectory}/${this.id}`).catch(() => {})
  }

  async discard(): Promise<void> {
    await this.#parts.logs.delete(this.id)
    await this.remove()
  }

  async #row(text: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    return (await this.#parts.ownership.database.read(text, [this.id]))[0]
  }
}

// A repeated statement finds its own row.
const RESERVE = `
  insert into conversations (id, reserved_by, owner) values ($1, $2, $3)
  on conflict (id) do update set reserved_by = $2 where conversations.reserved_by = $2
  returning id`
const RELEASE = 'update conversations set owner = null, is_released = true from allowed where id = $1 and owner = $2'
const UNRESERVE = 'delete from conversations using allowed where id = $1 and not has_log'

const isEmpty = (values: SecretValues): boolean =>
  Object.values(values).every((group) => Object.keys(group).length === 0)

const exists = (cause?: unknown): Problem =>
  new Problem(
    'conversation_exists',
    'Data of a conversation with this id already exists; restart the server to see it, or use another id.',
    { cause },
  )
