/** The files of one conversation in its directory: what each contains, and in which order they become durable. */
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Event, EventDraft } from '../../contract/events/event.ts'
import { codeOf } from '../../lib/error-code.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventStore, StoredLog } from '../../events/event-store.ts'
import { logPathIn } from './log/jsonl-store.ts'
import { syncDirectory } from '../../lib/durable-file.ts'
import { removeTree } from '../../files/trees/remove-tree.ts'
import type { Sealer } from '../../security/sealer.ts'
import type { CommandStorage, ConversationStorage, LastEvent, SecretValues, StoredDocument } from '../storage.ts'
import { CommandRecordFiles } from './command-record-files.ts'
import { JsonDocument } from './json-document.ts'
import { removeDraftsIn } from './left-files.ts'
import { endingOf } from './log-stamp.ts'
import { exists, touchDurably } from './directory/mark-files.ts'
import type { SecretFiles } from './secret-files.ts'
import type { SnapshotFiles } from './snapshot-files.ts'

/** What all conversations share. */
export type FileParts = {
  /** Contains one directory per conversation. */
  readonly directory: string
  readonly logs: EventStore
  readonly snapshots: SnapshotFiles
  readonly secrets: SecretFiles
  /** Throws a `Problem` if the data directory is not the locked one any more. */
  readonly requireHeld: () => Promise<void>
}

/** The mark of a conversation whose log does not exist yet; ignored once the log exists. */
const COPYING = 'copying'

export class FileConversation implements ConversationStorage {
  readonly id: string
  readonly directory: string
  readonly #parts: FileParts
  #callbacks: StoredDocument | undefined
  #commands: CommandStorage | undefined

  constructor(parts: FileParts, id: string) {
    this.id = id
    this.directory = `${parts.directory}/${id}`
    this.#parts = parts
  }

  get callbacks(): StoredDocument {
    return (this.#callbacks ??= new JsonDocument(`${this.directory}/callbacks.json`))
  }

  get commands(): CommandStorage {
    return (this.#commands ??= new CommandRecordFiles(`${this.directory}/commands`))
  }

  async reserve(): Promise<void> {
    await this.#parts.requireHeld()
    try {
      await mkdir(this.directory, { mode: 0o700 })
    } catch (cause) {
      if (codeOf(cause) !== 'EEXIST') throw cause
      throw new Problem(
        'conversation_exists',
        'Data of a conversation with this id already exists; restart the server to see it, or use another id.',
        { cause },
      )
    }
  }

  exists(): Promise<boolean> {
    return exists(this.directory)
  }

  async createdAt(): Promise<string> {
    return (await stat(this.directory)).birthtime.toISOString()
  }

  /** Runs in parallel: most of a create request is spent waiting for the disk. */
  async createLog(values: SecretValues): Promise<StoredLog> {
    const { logs, secrets } = this.#parts
    if (isEmpty(values)) return await logs.create(this.id)
    const secretsFile = secrets.create(this.id)
    const write = async () => await secrets.writeFirst(await secretsFile, this.id, values)
    const creating = logs.create(this.id, { named: secretsFile, write })
    // A file that is created after a failure would prevent the removal of the directory.
    const [file] = await Promise.allSettled([secretsFile, creating])
    if (file.status === 'fulfilled') await file.value.close()
    return await creating
  }

  copyLog(events: AsyncIterable<Event>, ending: () => readonly EventDraft[]): Promise<StoredLog> {
    return this.#parts.logs.copy(this.id, events, ending)
  }

  async openLog(): ReturnType<EventStore['open']> {
    await this.#parts.requireHeld()
    return await this.#parts.logs.open(this.id)
  }

  release(): Promise<void> {
    return Promise.resolve()
  }

  async lastEvent(): Promise<LastEvent | undefined> {
    return endingOf(logPathIn(this.#parts.directory, this.id))
  }

  readSecrets(): Promise<SecretValues> {
    return this.#parts.secrets.read(this.id)
  }

  writeSecrets(values: SecretValues): Promise<void> {
    return this.#parts.secrets.write(this.id, values)
  }

  get sealer(): Sealer {
    return this.#parts.secrets.sealerFor(this.id)
  }

  async markCopying(): Promise<void> {
    await touchDurably(this.directory, COPYING)
    await syncDirectory(this.#parts.directory)
  }

  isCopying(): Promise<boolean> {
    return exists(join(this.directory, COPYING))
  }

  async removeLeft(): Promise<void> {
    await removeDraftsIn(this.directory, ['commands', 'edits'])
  }

  async remove(): Promise<void> {
    // A file that appears while the directory is being emptied would prevent its removal.
    await this.#parts.snapshots.written(this.id)
    await removeTree(this.directory)
  }

  async discard(): Promise<void> {
    // This also closes its descriptor.
    await this.#parts.logs.delete(this.id)
    await this.remove()
  }
}

const isEmpty = (values: SecretValues): boolean =>
  Object.values(values).every((group) => Object.keys(group).length === 0)
