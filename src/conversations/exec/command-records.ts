/**
 * The records of a conversation's commands on disk, one file each, with what the command wrote in two more beside it.
 * Their number and size are bounded: the oldest give way, but not one that runs, nor one whose key still counts.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../../contract/problem.ts'
import { replaceFile } from '../../lib/durable-file.ts'
import { uuid7Time } from '../../lib/uuid7.ts'
import { CommandRecord } from './command-record.ts'
import { KEY_LIFETIME_MS } from '../idempotency/idempotency.ts'

export type RecordLimits = {
  /** Records kept. */
  readonly records: number
  /** Bytes of output kept, over all of them. */
  readonly outputBytes: number
}

export interface CommandRecords {
  /** Replaces what there is of it. `durable`: also a power cut leaves it there. */
  write(record: CommandRecord, options: { durable: boolean }): Promise<void>
  read(id: string): Promise<CommandRecord | undefined>
  /** Newest first. */
  ids(): Promise<string[]>
  /** Those that came with that `Idempotency-Key`, oldest first. */
  withKey(key: string): Promise<CommandRecord[]>
  outputPath(id: string, stream: 'stdout' | 'stderr'): string
  /**
   * Makes room for one more, by removing the oldest for which `isBusy` does not hold. Throws a `Problem` when there is
   * none that may go.
   */
  makeRoom(isBusy: (id: string) => boolean): Promise<void>
  /** So much more is in the files of outputs. */
  countOutput(bytes: number): void
}

/** So much of each limit is left when the oldest have gone: to look at all files each time would take too long. */
const KEPT_PART = 0.9

/** `directory` is made when it is needed. */
export function createCommandRecords(directory: string, limits: RecordLimits): CommandRecords {
  const pathOf = (entry: Entry) => join(directory, nameOf(entry))
  const outputPath = (id: string, stream: string) => join(directory, `${id}.${stream}`)
  const entries = async () => (await namesIn(directory)).flatMap(parseName).sort((a, b) => (a.id < b.id ? -1 : 1))
  const readEntry = async (entry: Entry) => parseRecord(await readFile(pathOf(entry), 'utf8').catch(ignoreMissing))
  let isMade = false
  let used: { count: number; bytes: number } | undefined
  const hasRoom = (part: number) => used && used.count < limits.records * part && used.bytes < limits.outputBytes * part

  return {
    outputPath,

    async write(record, { durable }) {
      if (!isMade) await mkdir(directory, { recursive: true, mode: 0o700 })
      isMade = true
      const keyHash = record.idempotency && hashOf(record.idempotency.key)
      await replaceFile(pathOf({ id: record.command_id, keyHash }), JSON.stringify(record), { durable })
    },

    async read(id) {
      const entry = (await entries()).find((each) => each.id === id)
      return entry && (await readEntry(entry))
    },

    async ids() {
      return (await entries()).map(({ id }) => id).toReversed()
    },

    async withKey(key) {
      const same = (await entries()).filter(({ keyHash }) => keyHash === hashOf(key))
      return (await Promise.all(same.map(readEntry))).filter((record) => record !== undefined)
    },

    countOutput(bytes) {
      if (used) used.bytes += bytes
    },

    async makeRoom(isBusy) {
      if (used && hasRoom(1)) return void used.count++
      const all = await entries()
      const mayGo = all.filter((entry) => !isBusy(entry.id) && !hasLiveKey(entry))
      if (all.length >= limits.records && mayGo.length === 0) {
        throw new Problem(
          'limit_reached',
          `A conversation keeps at most ${limits.records} commands, and those of the last day that came with an Idempotency-Key stay: leave the key out, or try again later.`,
          { details: { limit: limits.records, retry_after: 60 } },
        )
      }
      const files = (id: string) => STREAMS.map((stream) => outputPath(id, stream))
      used = { count: all.length, bytes: await sizeOf(all.flatMap(({ id }) => files(id))) }
      const part = hasRoom(1) ? 1 : KEPT_PART
      for (const entry of mayGo) {
        if (hasRoom(part)) break
        used.bytes -= await sizeOf(files(entry.id))
        used.count--
        for (const path of [...files(entry.id), pathOf(entry)]) await rm(path, { force: true })
      }
      used.count++
    },
  }
}

const STREAMS = ['stdout', 'stderr'] as const

/** A record's file, whose name says all that is needed to find it. */
type Entry = { readonly id: string; readonly keyHash: string | undefined }

const nameOf = ({ id, keyHash }: Entry) => (keyHash === undefined ? `${id}.json` : `${id}.${keyHash}.json`)

function parseName(name: string): Entry[] {
  const [, id, keyHash] = /^([0-9a-f-]{36})(?:\.([0-9a-f]{16}))?\.json$/.exec(name) ?? []
  return id === undefined ? [] : [{ id, keyHash }]
}

/** Undefined for one that has gone meanwhile, or that a power cut has torn: as it had no key, nobody counts on it. */
function parseRecord(text: string | undefined): CommandRecord | undefined {
  try {
    return CommandRecord.parse(JSON.parse(text ?? ''))
  } catch {
    return undefined
  }
}

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex').slice(0, 16)

const hasLiveKey = ({ id, keyHash }: Entry) =>
  keyHash !== undefined && Date.now() - (uuid7Time(id) ?? 0) < KEY_LIFETIME_MS

async function namesIn(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(ignoreMissing)) ?? []
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

async function sizeOf(paths: readonly string[]): Promise<number> {
  const sizes = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        ({ size }) => size,
        () => 0, // it wrote nothing
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
