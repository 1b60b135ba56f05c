/**
 * Which conversations there are, without opening their logs: `meta.json` beside each log, marks of those that are active
 * or have something to deliver, and the names of the deleted. All of it but the deletions is a cache or a hint: the logs win.
 */
/* oxlint-disable typescript/no-non-null-assertion -- the directories are made one for each name */
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { PostedMessage } from '../../contract/run.ts'
import { Status } from '../../contract/events/status.ts'
import { Decision } from '../../contract/permission.ts'
import { UsageByModel } from '../../contract/message.ts'
import { TaskProgress } from '../../contract/task.ts'
import { logPathIn } from '../../events/store/jsonl-store.ts'
import { replaceFile, syncDirectory } from '../../lib/durable-file.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import { removeTree } from '../../files/trees/remove-tree.ts'
import type { KeyedCreation } from '../idempotency/created-keys.ts'
import { KEY_LIFETIME_MS } from '../idempotency/idempotency.ts'
import type { SharedWorkdirs } from '../workdirs/shared-workdirs.ts'
import { createSharedWorkdirs } from '../workdirs/shared-workdirs.ts'
import type { State } from '../state/state.ts'
import { EMPTY_STATE, Settings } from '../state/state.ts'

const META_FORMAT = 1

/** Files read at the same time. */
const READ_CONCURRENCY = 64

const Run = z.object({
  id: z.string(),
  startedAt: z.string(),
  startSeq: z.number(),
  steps: z.number(),
  maxSteps: z.number().optional(),
  activeSince: z.string(),
  activeMs: z.number(),
  usage: UsageByModel,
  costUsd: z.number().optional(),
  finalText: z.string(),
})

const Request = z.object({
  id: z.string(),
  isReleased: z.boolean(),
  calls: z.array(
    z.object({
      toolUseId: z.string(),
      name: z.string(),
      input: z.unknown(),
      inputHash: z.string(),
      reason: z.string(),
      decision: Decision.optional(),
    }),
  ),
})

const OpenTask = z.object({
  id: z.string(),
  type: z.enum(['AgentRun', 'Command', 'Ticker']),
  title: z.string(),
  status: z.enum(['pending', 'running']),
  seq: z.number(),
  createdAt: z.string(),
  updatedAt: z.string(),
  runId: z.string().optional(),
  progress: TaskProgress.optional(),
})

const Key = z.object({ key: z.string(), bodyHash: z.string(), id: z.uuid(), at: z.iso.datetime() })

/** `meta.json`: the state as of `lastSeq`, from which a fold of the rest of the log goes on. */
const Meta = z.object({
  format: z.literal(META_FORMAT),
  id: z.string(),
  status: Status,
  reason: z.string(),
  lastSeq: z.number(),
  createdAt: z.string(),
  updatedAt: z.string(),
  settings: Settings,
  run: Run.optional(),
  openCalls: z.array(
    z.object({
      toolUseId: z.string(),
      name: z.string(),
      input: z.unknown(),
      runId: z.string().optional(),
      isChanged: z.boolean().optional(),
    }),
  ),
  request: Request.optional(),
  postedKeys: z.array(z.object({ key: z.string(), bodyHash: z.string(), at: z.string(), answer: PostedMessage })),
  // Absent from what an earlier version wrote, which had no tool of that kind.
  lastOutputs: z.record(z.string(), z.unknown()).default({}),
  // As above: there were no tasks.
  tasks: z.array(OpenTask).default([]),
  // As above: nobody was asked about hosts.
  networkRequests: z.array(z.object({ id: z.string(), host: z.string(), port: z.number() })).default([]),
  runRequestedAt: z.number(),
  // As above: all that there was counts as read.
  readThrough: z.number().optional(),
  repeats: z.object({ failures: z.array(z.string()), open: z.array(z.string()).optional() }).default({ failures: [] }),
  usage: UsageByModel,
  costUsd: z.number().optional(),
  preview: z.string(),
  version: z.number(),
})

export interface Catalog {
  /** Every conversation's id. */
  ids(): Promise<string[]>
  /** The state as last noted, or undefined when there is none of this conversation that can be read: fold the log from the start then. */
  read(id: string): Promise<State | undefined>
  write(state: State): Promise<void>
  /** Resolves when nothing is being written. */
  settled(): Promise<void>
  /** Removes the conversation's directory, after what is being written into it. No `write` of it may follow. */
  remove(id: string): Promise<void>
  /** Notes, durably, that this log may hold what a start of the server has to look after. */
  markActive(id: string): Promise<void>
  unmarkActive(id: string): Promise<void>
  activeIds(): Promise<string[]>
  /** Notes, durably and before the first file, that the workdir made for it is being filled from another one. */
  markCopying(id: string): Promise<void>
  isCopying(id: string): Promise<boolean>
  /** Notes, durably, that events of this conversation may wait for delivery to its callbacks. */
  markDue(id: string): Promise<void>
  unmarkDue(id: string): Promise<void>
  dueIds(): Promise<string[]>
  /** Durable before anything of the conversation is removed; with the key of the request that made it. */
  markDeleted(id: string, key?: KeyedCreation): Promise<void>
  isDeleted(id: string): Promise<boolean>
  deletedIds(): Promise<string[]>
  /** Those that still count; the others are removed. */
  deletedKeys(): Promise<KeyedCreation[]>
  readonly directoryOf: (id: string) => string
  readonly logPathOf: (id: string) => string
  /** Whether there is anything of it on disk, whole or not. */
  isThere(id: string): Promise<boolean>
  /** Workdirs that more than one conversation was given. */
  readonly sharedWorkdirs: SharedWorkdirs
}

/** `directory` is the data directory; its `sessions`, `active`, `due` and `deleted` are made. */
export async function createCatalog(directory: string): Promise<Catalog> {
  const [sessions, active, due, deleted] = await Promise.all(
    ['sessions', 'active', 'due', 'deleted'].map(async (name) => {
      await mkdir(join(directory, name), { recursive: true, mode: 0o700 })
      return join(directory, name)
    }),
  )
  await syncDirectory(directory)
  const isThere = (id: string) => exists(join(sessions!, id))
  const metaOf = (id: string) => join(sessions!, id, 'meta.json')
  // One write at a time per conversation, always of the newest state: an older one must not come to lie over it.
  const newest = new Map<string, State>()
  const writing = new Map<string, Promise<void>>()

  return {
    ids: () => listIds(sessions!),
    async read(id) {
      await writing.get(id)?.catch(() => {}) // reported to the caller that writes
      try {
        const { format: _, ...noted } = Meta.parse(JSON.parse(await readFile(metaOf(id), 'utf8')))
        const meta = { ...noted, readThrough: noted.readThrough ?? noted.lastSeq }
        // Optional fields of the schema are `undefined` ones of the state.
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this server writes the file
        return meta.id === id ? ({ ...EMPTY_STATE, ...meta } as State) : undefined
      } catch {
        return undefined // missing, torn or of another version: it is only a cache
      }
    },
    write(state) {
      const waiting = newest.has(state.id)
      newest.set(state.id, state)
      if (waiting) return writing.get(state.id)!
      const written = (writing.get(state.id) ?? Promise.resolve())
        .catch(() => {})
        .then(() => {
          const latest = newest.get(state.id)!
          newest.delete(state.id)
          return replaceMeta(metaOf(state.id), latest)
        })
      const done = written.finally(() => writing.get(state.id) === done && writing.delete(state.id))
      writing.set(state.id, done)
      return done
    },
    async settled() {
      while (writing.size > 0) await Promise.allSettled(writing.values())
    },
    async remove(id) {
      // A file that appears while the directory is emptied would keep it from going.
      await writing.get(id)?.catch(() => {})
      await removeTree(join(sessions!, id))
    },
    markActive: (id) => touchDurably(active!, id),
    unmarkActive: (id) => rm(join(active!, id), { force: true }),
    activeIds: () => listIds(active!),
    async markCopying(id) {
      await touchDurably(join(sessions!, id), COPYING)
      await syncDirectory(sessions!)
    },
    isCopying: (id) => exists(join(sessions!, id, COPYING)),
    markDue: (id) => touchDurably(due!, id),
    unmarkDue: (id) => rm(join(due!, id), { force: true }),
    dueIds: () => listIds(due!),
    async markDeleted(id, key) {
      // Before the mark, and synced with it.
      if (key) await writeFile(join(deleted!, `${id}${KEY_SUFFIX}`), JSON.stringify(key), { mode: 0o600, flush: true })
      await touchDurably(deleted!, id)
    },
    isDeleted: (id) => exists(join(deleted!, id)),
    deletedIds: () => listIds(deleted!),
    deletedKeys: () => readKeys(deleted!),
    directoryOf: (id) => join(sessions!, id),
    logPathOf: (id) => logPathIn(sessions!, id),
    sharedWorkdirs: createSharedWorkdirs(join(directory, 'shared-workdirs'), isThere),
    isThere,
  }
}

/** Not synced: after a power cut an old or empty one is found out by its `lastSeq`, and the log is folded anew. */
async function replaceMeta(path: string, state: State): Promise<void> {
  await replaceFile(path, JSON.stringify({ format: META_FORMAT, ...state }), { durable: false })
}

/** Of the id of a conversation; kept, for a data directory may hold a hundred thousand names. */
const UUID = z.regexes.uuid()

async function listIds(directory: string): Promise<string[]> {
  const names = await readdir(directory)
  return names.filter((name) => UUID.test(name))
}

/** In the directory of a conversation whose log is not there yet; once it is, it means nothing. */
const COPYING = 'copying'

/** Of a deleted conversation; the ids beside them have none. */
const KEY_SUFFIX = '.key'

async function readKeys(directory: string): Promise<KeyedCreation[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith(KEY_SUFFIX))
  const oldest = Date.now() - KEY_LIFETIME_MS
  const keys = await mapBounded(names, READ_CONCURRENCY, async (name) => {
    const path = join(directory, name)
    const key = parseKey(await readFile(path, 'utf8'))
    if (key && Date.parse(key.at) > oldest) return key
    await rm(path, { force: true })
    return undefined
  })
  return keys.filter((key) => key !== undefined)
}

/** Undefined for one that a crash cut off: its conversation was not deleted. */
function parseKey(text: string): KeyedCreation | undefined {
  try {
    return Key.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

async function touchDurably(directory: string, name: string): Promise<void> {
  await writeFile(join(directory, name), '', { mode: 0o600 })
  await syncDirectory(directory)
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )
