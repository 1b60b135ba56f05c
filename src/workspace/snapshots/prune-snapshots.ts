/** Chooses the snapshots that are kept: all of the last run, one per message before it, and none that is too old. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventOf } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { StoredEvent } from '../../events/event-store.ts'
import type { GitStore } from './git-store.ts'
import { forgetSnapshot, keepLooks } from './stored-snapshots.ts'

/** A snapshot of the log; its content may be removed. */
export type KnownSnapshot = {
  readonly id: string
  /** Seq of its event. */
  readonly seq: number
  /** Seq of the last event that the files are the result of. */
  readonly asOf: number
  /** The time when it was taken; Unix time in milliseconds. */
  readonly at: number
  /** The commit of HEAD of the user's own repository then. */
  readonly head?: string | undefined
}

/** When a store is larger, the oldest snapshots go, but none of the last run. */
export type SnapshotLimits = { readonly maxAgeMs: number; readonly maxBytes: number }

const DEFAULT_LIMITS: SnapshotLimits = { maxAgeMs: 30 * 24 * 3_600_000, maxBytes: 1024 ** 3 }
/** Each snapshot adds a pack. With more, git takes longer to find an object. */
const MAX_PACKS = 30
const PAGE = 1000

export async function listSnapshots(log: Pick<EventLog, 'read'>): Promise<KnownSnapshot[]> {
  const events = await readAll(log, 'WorkspaceSnapshot')
  return events.map(({ seq, event }) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only events of this type were read
    const { snapshot_id: id, as_of_seq: asOf, timestamp, head_commit: head } = event as EventOf<'WorkspaceSnapshot'>
    return { id, seq, asOf, at: Date.parse(timestamp), head }
  })
}

export const readMessageSeqs = async (log: Pick<EventLog, 'read'>): Promise<readonly number[]> =>
  (await readAll(log, 'UserMessage')).map(({ seq }) => seq)

async function readAll(log: Pick<EventLog, 'read'>, type: string): Promise<StoredEvent[]> {
  const foundEvents: StoredEvent[] = []
  const types = new Set([type])
  for (let afterSeq: number | undefined = 0; afterSeq !== undefined;) {
    const page = await log.read({ types, afterSeq, limit: PAGE })
    foundEvents.push(...page.events)
    afterSeq = page.scannedTo
  }
  return foundEvents
}

type Keeping = {
  /** All since then are kept. */
  readonly runStart: number
  readonly messages: () => Promise<readonly number[]>
  /** Commits of looks that are in no snapshot, in order: the next look begins with the last, and clients read the others. */
  readonly looks: readonly string[]
  readonly limits?: SnapshotLimits | undefined
}

/** Removes what is not kept, and packs the rest when that is worth it. */
export async function pruneSnapshots(
  store: GitStore,
  known: readonly KnownSnapshot[],
  keeping: Keeping,
): Promise<void> {
  const { maxAgeMs, maxBytes } = keeping.limits ?? DEFAULT_LIMITS
  const there = new Set(await readdir(join(store.directory, 'refs', 'snapshots')).catch(() => []))
  const existing = known.filter(({ id }) => there.has(id))
  const ofRun = existing.findIndex(({ asOf }) => asOf >= keeping.runStart)
  // What the last run began with is kept as well.
  const start = Math.max((ofRun < 0 ? existing.length : ofRun) - 1, 0)
  const older = existing.slice(0, start)
  const snapshotsToRemove =
    older.length === 0 ? [] : notKept(existing, start, await keeping.messages(), Date.now() - maxAgeMs)
  for (const { id } of snapshotsToRemove) await forgetSnapshot(store, id)
  const { packs, bytes } = await measure(store)
  const keptSnapshots = older.filter((each) => !snapshotsToRemove.includes(each))
  // Clients have compared the files of now, which is in no snapshot: none goes for that.
  const isTooLarge = bytes > maxBytes && keptSnapshots.length > 0
  const lastLook = keeping.looks.slice(-1)
  if (snapshotsToRemove.length > 0 || packs > MAX_PACKS || isTooLarge)
    await pack(store, isTooLarge ? lastLook : keeping.looks)
  while (keptSnapshots.length > 0 && (await measure(store)).bytes > maxBytes) {
    for (const { id } of keptSnapshots.splice(0, Math.ceil(keptSnapshots.length / 2))) await forgetSnapshot(store, id)
    await pack(store, lastLook)
  }
}

/** The last one between two messages is kept. All from `start` on are. */
function notKept(
  all: readonly KnownSnapshot[],
  start: number,
  messages: readonly number[],
  since: number,
): readonly KnownSnapshot[] {
  const messageOf = ({ asOf }: KnownSnapshot) => messages.findLastIndex((seq) => seq <= asOf)
  return all.slice(0, start).filter((each, index) => {
    const next = all[index + 1]
    return each.at < since || (next !== undefined && messageOf(next) === messageOf(each))
  })
}

/** Packs what clients have looked at, which is in no snapshot: they may look at each change of the files. `looks`: the commits that are still of use. */
export async function packLooks(store: GitStore, looks: readonly string[]): Promise<void> {
  if ((await measure(store)).packs > MAX_PACKS) await pack(store, looks)
}

/** Objects that neither a snapshot nor one of the looks has are left out. */
async function pack(store: GitStore, looks: readonly string[]): Promise<void> {
  await keepLooks(store, looks)
  await store.run(['repack', '-a', '-d', '-q', '--no-write-bitmap-index'])
}

async function measure(store: GitStore): Promise<{ readonly packs: number; readonly bytes: number }> {
  const directory = join(store.directory, 'objects', 'pack')
  const names = await readdir(directory).catch(() => [])
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(directory, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return { packs: names.filter((name) => name.endsWith('.pack')).length, bytes: sizes.reduce((a, b) => a + b, 0) }
}
