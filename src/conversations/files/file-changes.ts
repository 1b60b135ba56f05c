/** What clients change in one conversation's workdir: one change at a time, whole or not at all, and each told in the log. */
import type { Event, EventDraft, EventOf } from '../../contract/events/event.ts'
import type { MadeDirectory, WrittenFile } from '../../contract/files.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { Queue } from '../../lib/queue.ts'
import type { DiskQuota } from '../../limits/disk-quota.ts'
import type { JailPath } from '../../files/jail-path.ts'
import type { Jail } from '../../files/path-jail.ts'
import { makeDirectoriesIn } from '../../files/path-jail.ts'
import type { IncomingFile, ReceivedFile } from '../../files/receive-files.ts'
import { receiveFiles } from '../../files/receive-files.ts'
import { remove } from '../../files/remove-file.ts'
import type { UnfinishedFiles } from '../../files/unfinished-files.ts'
import type { Precondition, Publishing } from '../../files/write-file.ts'
import { checkTarget, publish, stage, touch } from '../../files/write-file.ts'
import type { Keyed } from '../idempotency/idempotency.ts'
import { answerOnce } from '../idempotency/idempotency.ts'
import { createInFlight } from '../idempotency/in-flight.ts'
import { eventsWithKey } from '../idempotency/keyed-events.ts'
import { refuseSecretsIn } from '../config/refuse-secrets.ts'

/** On its way in. `maxBytes` is for all of it; more is a `Problem`. Aborting leaves nothing behind. */
export type Incoming<T> = {
  readonly content: AsyncIterable<T>
  readonly maxBytes: number
  readonly signal: AbortSignal
}

/**
 * Each throws a `Problem` for what is not in the workdir, not there, or not allowed. When it resolves the change is on
 * disk and its event stored. The same key and request again, within a day, is answered as it was.
 */
export interface FileChanges {
  /** Nothing at all makes an empty file, or leaves one that is there as it is but for its time. */
  readonly write: (
    path: JailPath,
    incoming: Incoming<Uint8Array>,
    publishing: Publishing,
  ) => Promise<{ file: WrittenFile; created: boolean; etag: string }>
  readonly upload: (
    path: JailPath,
    incoming: Incoming<IncomingFile>,
    keyed: Keyed | undefined,
  ) => Promise<WrittenFile[]>
  readonly remove: (path: JailPath, how: Removal, signal: AbortSignal) => Promise<void>
  readonly makeDirectory: (path: JailPath, keyed: Keyed | undefined, signal: AbortSignal) => Promise<MadeDirectory>
  /** No change is made any more when it resolves. */
  readonly settled: () => Promise<void>
}

export type Removal = { readonly recursive: boolean; readonly precondition: Precondition }

export type FileChangesDeps = {
  readonly log: EventLog
  readonly inJail: <T>(signal: AbortSignal, work: (jail: Jail) => Promise<T>) => Promise<T>
  /** Aborted when no change may begin any more. */
  readonly closing: AbortSignal
  readonly unfinished: UnfinishedFiles
  readonly quota: DiskQuota | undefined
  readonly redact: (text: string) => string
}

type Told = EventOf<'FileUpdate'>
const TOLD = new Set(['FileUpdate'])
const isTold = (event: Event): event is Told => event.type === 'FileUpdate'

type Update = Omit<Extract<EventDraft, { type: 'FileUpdate' }>, 'type' | 'source'>

export function createFileChanges(deps: FileChangesDeps): FileChanges {
  const { log, inJail, closing, unfinished, quota, redact } = deps
  const changes = new Queue({ limit: 1 })
  const inFlight = createInFlight()

  // One after the other: what was true of a file is true when it is replaced, and the log has the order of the changes.
  const change = <T>(work: () => Promise<T>): Promise<T> =>
    changes.run(async () => {
      closing.throwIfAborted()
      return await work()
    })

  async function tell(...updates: Update[]): Promise<Told[]> {
    try {
      const stored = await log.append(
        updates.map((update) => ({ ...update, path: redact(update.path), type: 'FileUpdate', source: 'user' })),
      )
      return stored.map(({ event }) => event as Told)
    } catch (error) {
      throw untold(error)
    }
  }

  async function write(jail: Jail, path: JailPath, incoming: Incoming<Uint8Array>, publishing: Publishing) {
    const tellOf = async (size: number) => writtenFile((await tell({ path: path.text, action: 'write', size }))[0]!)
    // Before the body is read: whoever waits to be told to go on sends it in vain else.
    await checkTarget(jail, path.names, publishing)
    const content = await begin(limited(incoming, await roomIn(quota)))
    const touched =
      content.isEmpty &&
      !publishing.isNew &&
      (await change(async () => {
        const file = await touch(jail, path.names, publishing)
        return file && { file: await tellOf(file.size), created: false, etag: file.etag }
      }))
    if (touched) return touched
    await using staged = await stage(jail, path.names.slice(0, -1), {
      content: content.all,
      withHash: false,
      unfinished,
    })
    return await change(async () => {
      const published = await publish(jail, staged, path.names, publishing)
      quota?.add(staged.size)
      return { ...published, file: await tellOf(staged.size) }
    })
  }

  async function publishAll(files: readonly ReceivedFile[], key: object): Promise<Told[]> {
    const done: Update[] = []
    try {
      for (const file of files) {
        await file.publish()
        quota?.add(file.size)
        done.push({ path: file.path, action: 'upload', size: file.size })
      }
    } catch (error) {
      // Those that have their place are told of; without the key, for this is not what was asked for.
      if (done.length > 0) await tell(...done)
      throw error
    }
    return await tell(...done.map((update) => ({ ...update, ...key })))
  }

  async function makeOne(jail: Jail, path: JailPath, key: EventKey): Promise<MadeDirectory> {
    await roomIn(quota)
    const { place, made } = await makeDirectoriesIn(jail, path.names)
    await place.handle.close()
    if (!made) return { path: redact(path.text) }
    const [event] = await tell({ path: path.text, action: 'mkdir', ...key })
    return madeDirectory(event!)
  }

  async function keyedWork<T>(keyed: Keyed | undefined, work: (request: KeyedRequest) => Promise<T>): Promise<T> {
    if (!keyed) return await work({ earlier: [], once: (_, { make }) => make({}) })
    refuseSecretsIn({ 'Idempotency-Key': keyed.key }, redact)
    return await inFlight(keyed.key, async () => {
      // Of one moment: what was found is still known when all of the body has come.
      const now = Date.now()
      const earlier = await Array.fromAsync(eventsWithKey(log, keyed.key, isTold, { types: TOLD }, now))
      return await work({ earlier, once: onceFor(keyed, earlier, now) })
    })
  }

  return {
    write(path, incoming, publishing) {
      requireFilePath(path)
      return inJail(incoming.signal, (jail) => write(jail, path, incoming, publishing))
    },

    upload: (path, { content, maxBytes, signal }, keyed) =>
      keyedWork(keyed, ({ earlier, once }) =>
        inJail(signal, async (jail) => {
          const count = limitOf(maxBytes, await roomIn(quota))
          const options = { count, withHash: keyed !== undefined, isKept: earlier.length === 0, unfinished }
          await using received = await receiveFiles(jail, path, content, options)
          const body = { path: path.text, files: received.files.map((file) => [file.path, file.sha256 ?? '']) }
          const events = await once(body, {
            again: async () => earlier,
            make: (key) => change(() => publishAll(received.files, key)),
          })
          return events.map(writtenFile)
        }),
      ),

    remove: (path, how, signal) =>
      inJail(signal, (jail) =>
        change(async () => {
          await remove(jail, path.names, how)
          await tell({ path: path.text, action: 'delete' })
        }),
      ),

    makeDirectory: (path, keyed, signal) =>
      keyedWork(keyed, async ({ earlier, once }) =>
        once(
          { path: path.text },
          {
            again: async () => madeDirectory(earlier[0]!), // there is one, or it would not be `again`
            make: (key) => inJail(signal, (jail) => change(() => makeOne(jail, path, key))),
          },
        ),
      ),

    settled: () => changes.run(async () => {}),
  }
}

const writtenFile = ({ path, size = 0, id, seq }: Told): WrittenFile => ({ path, size, event_id: id, seq })

const madeDirectory = ({ path, id, seq }: Told): MadeDirectory => ({ path, event_id: id, seq })

/** What the events of a request keep of its key. */
type EventKey = Pick<Update, 'idempotency_key' | 'body_hash'>

type KeyedRequest = {
  /** What the same key has done before; nothing when it is the first request. */
  readonly earlier: readonly Told[]
  /** `answerOnce`, once the body is known. */
  readonly once: <T>(
    body: object,
    steps: { readonly again: () => Promise<T>; readonly make: (key: EventKey) => Promise<T> },
  ) => Promise<T>
}

function onceFor(keyed: Keyed, earlier: readonly Told[], now: number): KeyedRequest['once'] {
  const { key } = keyed
  const remembered = earlier.map(({ body_hash: bodyHash = '', timestamp: at }) => ({ key, bodyHash, at }))
  return (body, { again, make }) => {
    const idempotency = keyed.with(body)
    const kept = { idempotency_key: key, body_hash: idempotency.bodyHash }
    return answerOnce(idempotency, { remembered, again, make: () => make(kept) }, now)
  }
}

function requireFilePath({ names, endsInSlash }: JailPath): void {
  if (names.length === 0 || endsInSlash)
    throw new Problem('invalid_request', 'Give the path of a file, without a slash at its end.')
}

/** Answers a function to be told how much has come; it throws when that is too much. */
function limitOf(maxBytes: number, room: Room): (bytes: number) => void {
  let taken = 0
  return (bytes) => {
    taken += bytes
    if (taken > maxBytes) throw tooLarge()
    if (taken > room.bytes) throw noRoomIn(room.quota)
  }
}

/** Where it is full, not even an empty file is made. */
type Room = { readonly bytes: number; readonly quota: DiskQuota | undefined }

async function roomIn(quota: DiskQuota | undefined): Promise<Room> {
  const bytes = quota ? await quota.room() : Infinity
  if (bytes === 0) throw noRoomIn(quota)
  return { bytes, quota }
}

function noRoomIn(quota: DiskQuota | undefined): Problem {
  const details = { used_bytes: quota?.usedBytes ?? 0, limit_bytes: quota?.limitBytes ?? 0 }
  const message = `${quota?.tell({ withNames: false }) ?? ''} Nothing was kept of this; delete files first.`
  return new Problem('disk_quota_exceeded', message, { details })
}

export const tooLarge = () =>
  new Problem('body_too_large', 'This is larger than OPENHANDS_MAX_UPLOAD_BYTES allows; nothing was kept of it.')

async function* limited({ content, maxBytes }: Incoming<Uint8Array>, room: Room): AsyncGenerator<Uint8Array> {
  const count = limitOf(maxBytes, room)
  for await (const piece of content) {
    count(piece.length)
    if (piece.length > 0) yield piece
  }
}

type Begun = { readonly isEmpty: boolean; readonly all: AsyncIterable<Uint8Array> }

/** Waits for the first piece. */
async function begin(content: AsyncGenerator<Uint8Array>): Promise<Begun> {
  const first = await content.next()
  if (first.done) return { isEmpty: true, all: content }
  const all = async function* () {
    yield first.value
    yield* content
  }
  return { isEmpty: false, all: all() }
}

/** The file is as it was asked for; but who reads the log does not learn of it. */
function untold(cause: unknown): unknown {
  if (!(cause instanceof Problem)) return cause
  const message = `The change was made, but could not be told in the log. ${cause.message}`
  return new Problem(cause.code, message, { details: { ...cause.details, changed: true }, cause })
}
