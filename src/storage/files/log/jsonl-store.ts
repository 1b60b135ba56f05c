/**
 * The embedded event store: one `<directory>/<id>/events.jsonl` per conversation. Owns which log object is the current
 * writer.
 */
import { readdir, rm, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { makeDirectories } from '../../../files/make-directories.ts'
import { Problem } from '../../../contract/problem.ts'
import { codeOf, isOutOfRoom } from '../../../lib/error-code.ts'
import { Queue } from '../../../lib/queue.ts'
import { shareNext } from '../../../lib/lazily.ts'
import { writeCopiedLog } from './copied-log.ts'
import type { Beside, EventStore, LogView, LogViews, StoredLog } from '../../../events/event-store.ts'
import { JsonlLog } from './jsonl-log.ts'
import type { JsonlLogParts } from './jsonl-log.ts'
import { LogFile } from './log-file.ts'
import { readPage } from './log-scan.ts'
import { SeqIndex } from './seq-index.ts'
import { syncDirectory } from '../../../lib/durable-file.ts'
import { cutTail, findTail } from './tail-repair.ts'
import type { Tail } from './tail-repair.ts'
import { viewOf } from '../../shared/view-of-writer.ts'

const FILE = 'events.jsonl'
/** The time after which an unused log keeps neither a descriptor nor cached contents. */
const IDLE_MS = 30_000

export type JsonlStoreOptions = {
  /** Contains one directory per conversation; created if it does not exist. */
  readonly directory: string
  /** Unix time in milliseconds. */
  readonly now?: () => number
  readonly idleMs?: number
}

/**
 * Returns the log path of a conversation in this directory. Concatenated by hand, because startup needs it for each
 * conversation.
 */
export const logPathIn = (directory: string, conversationId: string): string => `${directory}/${conversationId}/${FILE}`

export function createJsonlStore(options: JsonlStoreOptions): EventStore & LogViews {
  const { directory, now = Date.now, idleMs = IDLE_MS } = options
  // Two objects writing one file would overwrite each other's events. So opening a log takes it over from the previous
  // holder, and per conversation that happens strictly in turn.
  const current = new Map<string, JsonlLog>()
  const queue = new Queue({ perKey: 1 })
  const enqueue = <T>(key: string, work: () => Promise<T>) => queue.run(work, { key })
  let lastEpoch = 0
  // Many creates at the same time wait for the same directory.
  const syncNames = shareNext(() => syncDirectory(directory))

  function take(conversationId: string, parts: Pick<JsonlLogParts, 'file' | 'index' | 'tail' | 'named'>): StoredLog {
    const onClosed = () => current.get(conversationId) === log && current.delete(conversationId)
    const log = new JsonlLog({ conversationId, epoch: ++lastEpoch, now, onClosed, ...parts })
    current.set(conversationId, log)
    return log
  }

  function fileOf(conversationId: string): { path: string; file: LogFile; index: SeqIndex } {
    const path = logPathIn(directory, conversationId)
    const index = new SeqIndex()
    return { path, index, file: new LogFile(path, { idleMs, onIdle: () => index.forget() }) }
  }

  return {
    async create(conversationId, beside) {
      requireUuid(conversationId)
      return await enqueue(conversationId, async () => {
        const { path, file, index } = fileOf(conversationId)
        const { named } = await createFile(file, path, { beside, syncNames, directory }).catch(refuseCreation)
        return take(conversationId, { file, index, tail: { last: undefined, end: 0 }, named })
      })
    },

    async copy(conversationId, events, ending) {
      requireUuid(conversationId)
      return await enqueue(conversationId, async () => {
        const { path, file, index } = fileOf(conversationId)
        if (await exists(path)) refuseCreation(Object.assign(new Error(`${path} exists`), { code: 'EEXIST' }))
        await makeDirectories(dirname(path), 0o700)
        await writeCopiedLog(path, { conversationId, events, ending, now })
        const { tail } = await openFile(file, path, now())
        return take(conversationId, { file, index, tail })
      })
    },

    async open(conversationId) {
      requireUuid(conversationId)
      return await enqueue(conversationId, async () => {
        await current.get(conversationId)?.retire('fenced')
        const { path, file, index } = fileOf(conversationId)
        try {
          const { tail, repaired } = await openFile(file, path, now())
          return { log: take(conversationId, { file, index, tail }), repaired }
        } catch (error) {
          await file.close(notFound())
          throw isMissing(error) ? notFound() : error
        }
      })
    },

    async view(conversationId) {
      requireUuid(conversationId)
      return await enqueue(conversationId, async () => {
        const writer = current.get(conversationId)
        // A log that is being closed is there until its last events are written.
        return writer && (await writer.isReadable()) ? viewOf(writer) : await viewFile(fileOf(conversationId))
      })
    },

    async delete(conversationId) {
      requireUuid(conversationId)
      await enqueue(conversationId, async () => {
        await current.get(conversationId)?.retire('deleted')
        current.delete(conversationId)
        await removeFiles(join(directory, conversationId))
      })
    },
  }
}

async function viewFile({ file, index }: { file: LogFile; index: SeqIndex }): Promise<LogView> {
  try {
    const tail = await findTail(file, await syncedSize(file))
    const snapshot = { source: file, index, head: tail.last?.seq ?? 0, end: tail.end }
    return {
      head: snapshot.head,
      read: (options) => readPage(snapshot, options),
      [Symbol.asyncDispose]: () => file.close(notFound()),
    }
  } catch (error) {
    await file.close(notFound())
    throw isMissing(error) ? notFound() : error
  }
}

/** Bytes that a killed server wrote may be readable and yet not be on disk: sync before showing them. */
async function syncedSize(file: LogFile): Promise<number> {
  const size = await file.size()
  await file.sync()
  return size
}

type Creation = {
  readonly beside: Beside | undefined
  /** The directory of the store, and what syncs it. */
  readonly directory: string
  readonly syncNames: () => Promise<void>
}

/**
 * Resolves to the promise of a durable directory entry, which the caller handles: it is synced while the first events are
 * written. If other files are created with the log, it is durable already: a log with events must not lack them.
 */
async function createFile(
  file: LogFile,
  path: string,
  { beside, directory: ofAll, syncNames }: Creation,
): Promise<{ readonly named: Promise<unknown> }> {
  const directory = dirname(path)
  let topmost: string | undefined
  try {
    await file.create()
  } catch (error) {
    if (!isMissing(error)) throw error
    topmost = await makeDirectories(directory, 0o700)
    await file.create()
  }
  // Sync the parent in any case: others create files in the directory before us, and may not have synced its name.
  const depth = topmost === undefined ? 0 : relative(topmost, directory).split('/').filter(Boolean).length
  const parents = [directory]
  for (let up = 0, at = directory; up <= depth; up++) parents.push((at = dirname(at)))
  await beside?.named
  // Sync concurrently: one journal commit covers all of them.
  const syncing = Promise.all(parents.map((each) => (each === ofAll ? syncNames() : syncDirectory(each))))
  if (beside) await Promise.all([syncing, beside.write()])
  // It may fail before anyone waits for it.
  syncing.catch(() => {})
  return { named: syncing }
}

function refuseCreation(cause: unknown): never {
  if (isOutOfRoom(cause)) throw new Problem('storage_full', 'There is no room for another conversation.', { cause })
  if (codeOf(cause) !== 'EEXIST') throw cause
  throw new Problem('conversation_exists', 'A conversation with this id already exists.', { cause })
}

async function openFile(
  file: LogFile,
  path: string,
  now: number,
): Promise<{ tail: Tail; repaired: string | undefined }> {
  const size = await syncedSize(file)
  const tail = await findTail(file, size)
  return tail.end === size
    ? { tail, repaired: undefined }
    : { tail, repaired: await cutTail(file, path, tail, size, now) }
}

/** Removes the files of the log, and nothing else in the directory. Idempotent. */
async function removeFiles(directory: string): Promise<void> {
  try {
    const names = await readdir(directory)
    const own = names.filter((name) => name === FILE || name.startsWith(`${FILE}.`))
    for (const name of own) await rm(join(directory, name), { force: true })
    await syncDirectory(directory)
  } catch (error) {
    if (!isMissing(error)) throw error
  }
}

/** Ids become directory names: only a UUID may reach the file system. */
function requireUuid(conversationId: string): void {
  if (!/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(conversationId)) throw notFound()
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  )

function isMissing(error: unknown): boolean {
  return codeOf(error) === 'ENOENT'
}

function notFound(): Problem {
  return new Problem('conversation_not_found', 'No conversation has this id.')
}
