/**
 * The summaries of all conversations in one file, so that startup reads one file instead of one per conversation.
 *
 * It is a cache. An entry is valid only while its log is unchanged, according to its stamp; missing, torn or unreadable
 * entries are read from the conversation's own files. Nothing is synced: a crash only makes the next start slower.
 *
 * One line per conversation, which is blanked when a newer one is appended or the conversation is deleted. When blanks
 * make up most of the file, it is rewritten without them.
 */
import { open, readFile, rename, rm } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { Status } from '../../contract/events/status.ts'
import { Queue } from '../../lib/queue.ts'
import { createSlices } from '../../lib/time-slices.ts'
import { writeAll } from '../../lib/durable-file.ts'
import type { Summary } from '../storage.ts'
import type { LogStamp } from './log-stamp.ts'

export type NotedSummary = { readonly summary: Summary; readonly stamp: LogStamp }

/** Raised when summaries are derived differently or have another format. */
const HEADER = '["agent-server summaries",3]\n'

type Entry = readonly [
  id: string,
  size: number,
  mtimeMs: number,
  status: Status,
  lastSeq: number,
  createdAt: number,
  updatedAt: number,
  title: string | null,
  userId: string | null,
  preview: string,
  key: string | null,
  bodyHash: string | null,
  waitsSince: number | null,
  deadline: number | null,
]

const LF = 10
/** Bytes parsed or written at a time. */
const READ_BYTES = 128 * 1024
const WRITE_BYTES = 1024 * 1024
/** Longer than nearly all lines. */
const LINE_BYTES = 2048
/** Fewer blanks than this are not worth rewriting the file. */
const MIN_BLANK_BYTES = 1024 * 1024

export type SummaryFileDeps = {
  readonly path: string
  /** Called with errors that prevent writing entries; the next start then reads those conversations. */
  readonly onFault: (error: unknown) => void
}

export class SummaryFile {
  readonly #deps: SummaryFileDeps
  /** Runs one write at a time. */
  readonly #writes = new Queue({ limit: 1 })
  /** The offset of each conversation's line. */
  readonly #places = new Map<string, number>()
  readonly #superseded: number[] = []
  #waiting = new Map<string, NotedSummary>()
  #file: FileHandle | undefined
  #end = 0
  #blankBytes = 0

  constructor(deps: SummaryFileDeps) {
    this.#deps = deps
  }

  /** Returns the recorded summaries, each valid while its stamp matches the log. Call it once, first. */
  async read(): Promise<Map<string, NotedSummary>> {
    const noted = new Map<string, NotedSummary>()
    const bytes = await readFile(this.#deps.path).catch(() => undefined)
    if (bytes?.toString('latin1', 0, HEADER.length) !== HEADER) return noted
    const slices = createSlices()
    // A line without an end was torn; it is overwritten.
    const size = bytes.lastIndexOf(LF) + 1
    for (let at = (this.#end = HEADER.length); at < size; at = this.#end) {
      const end = bytes.indexOf(LF, Math.min(at + READ_BYTES, size - 1))
      const entries = parseLines(bytes.toString('utf8', at, end))
      for (const entry of entries) {
        const lineAt = this.#end
        this.#end = bytes.indexOf(LF, lineAt) + 1
        const one = fromEntry(entry)
        if (!one) this.#blankBytes += this.#end - lineAt
        if (!one) continue
        // Of two of the same conversation, where a crash has left the former, the later counts.
        // oxlint-disable-next-line typescript/no-non-null-assertion -- what was noted has a position
        if (noted.has(one.summary.id)) this.#superseded.push(this.#places.get(one.summary.id)!)
        noted.set(one.summary.id, one)
        this.#places.set(one.summary.id, lineAt)
      }
      await slices.rest()
    }
    return noted
  }

  /** Queues a summary. Nobody may write the log between the creation of its stamp and that of the summary. */
  note(noted: NotedSummary): void {
    this.#waiting.set(noted.summary.id, noted)
    if (this.#waiting.size === 1) void this.#do(() => this.#writeWaiting())
  }

  /** Resolves when the file contains nothing of the conversation. */
  async forget(id: string): Promise<void> {
    this.#waiting.delete(id)
    await this.#do(async () => {
      const place = this.#places.get(id)
      this.#places.delete(id)
      if (place !== undefined) await this.#blank(place)
      await this.#writeAnew()
    })
  }

  /** Call it after startup: forgets conversations that no longer exist, and removes the blanks if there are many. */
  async tidy(isThere: (id: string) => boolean): Promise<void> {
    for (const id of this.#places.keys()) if (!isThere(id)) await this.forget(id)
    await this.#do(async () => {
      for (const place of this.#superseded.splice(0)) await this.#blank(place)
      await this.#writeAnew()
    })
  }

  /** Writes pending summaries. */
  async close(): Promise<void> {
    await this.#do(async () => {
      await this.#file?.close()
      this.#file = undefined
    })
  }

  /** Never rejects: after an error the file is left alone, and the next start detects missing entries. */
  #do(work: () => Promise<void>): Promise<void> {
    return this.#writes.run(work).catch(this.#deps.onFault)
  }

  async #writeWaiting(): Promise<void> {
    const slices = createSlices()
    let lines: { id: string; line: Buffer }[] = []
    let bytes = 0
    for (const [id, noted] of this.#waiting) {
      this.#waiting.delete(id)
      const line = Buffer.from(`${JSON.stringify(toEntry(noted))}\n`)
      lines.push({ id, line })
      bytes += line.length
      if (bytes < WRITE_BYTES) continue
      await this.#append(lines)
      ;[lines, bytes] = [[], 0]
      await slices.rest()
    }
    await this.#append(lines)
    await this.#writeAnew()
  }

  async #append(lines: readonly { readonly id: string; readonly line: Buffer }[]): Promise<void> {
    if (lines.length === 0) return
    const file = await this.#opened()
    await writeAll(file, Buffer.concat(lines.map(({ line }) => line)), this.#end)
    const replaced: number[] = []
    for (const { id, line } of lines) {
      const place = this.#places.get(id)
      if (place !== undefined) replaced.push(place)
      this.#places.set(id, this.#end)
      this.#end += line.length
    }
    for (const place of replaced) await this.#blank(place)
  }

  async #opened(): Promise<FileHandle> {
    if (this.#file) return this.#file
    this.#file = await open(this.#deps.path, this.#end === 0 ? 'w+' : 'r+', 0o600)
    if (this.#end === 0) {
      await writeAll(this.#file, Buffer.from(HEADER), 0)
      this.#end = HEADER.length
    } else {
      // A torn line follows it.
      await this.#file.truncate(this.#end)
    }
    return this.#file
  }

  async #blank(at: number): Promise<void> {
    const file = await this.#opened()
    const length = await lengthOfLine(file, at)
    // It is a JSON value like the lines around it.
    await writeAll(file, Buffer.from('0'.padEnd(length)), at)
    this.#blankBytes += length
  }

  /** Copies line by line from the old file, in the order of recording. */
  async #writeAnew(): Promise<void> {
    if (this.#blankBytes < Math.max(MIN_BLANK_BYTES, this.#end / 2)) return
    const { path } = this.#deps
    const bytes = await readFile(path)
    // Not `replaceFile`: the file stays open for later lines.
    const next = `${path}.new`
    const file = await open(next, 'w+', 0o600)
    try {
      let end = HEADER.length
      const places = new Map<string, number>()
      await writeAll(file, Buffer.from(HEADER), 0)
      for (const batch of batchesOf([...this.#places])) {
        const lines = batch.map(([, at]) => bytes.subarray(at, bytes.indexOf(LF, at) + 1))
        await writeAll(file, Buffer.concat(lines), end)
        for (const [i, [id]] of batch.entries()) {
          places.set(id, end)
          // oxlint-disable-next-line typescript/no-non-null-assertion -- one line for each entry of the batch
          end += lines[i]!.length
        }
      }
      await rename(next, path)
      await this.#file?.close()
      for (const [id, place] of places) this.#places.set(id, place)
      this.#superseded.length = 0
      ;[this.#file, this.#end, this.#blankBytes] = [file, end, 0]
    } catch (error) {
      await file.close()
      await rm(next, { force: true })
      throw error
    }
  }
}

function toEntry({ summary, stamp }: NotedSummary): Entry {
  const { id, status, lastSeq, title, userId, preview, idempotency, waitsSince, deadline } = summary
  const times = [summary.createdAt, summary.updatedAt] as const
  const keys = [idempotency?.key ?? null, idempotency?.bodyHash ?? null] as const
  const rest = [title ?? null, userId ?? null, preview, ...keys, waitsSince ?? null, deadline ?? null] as const
  return [id, stamp.size, stamp.mtimeMs, status, lastSeq, ...times, ...rest]
}

/** Parses one value per line, in order. All at once, which takes half the time, unless a line is torn. */
function parseLines(text: string): unknown[] {
  try {
    const parsed: unknown[] = JSON.parse(`[${text.replaceAll('\n', ',')}]`)
    return parsed
  } catch {
    return text.split('\n').map(parseLine)
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Returns undefined if it is not a summary. */
function fromEntry(value: unknown): NotedSummary | undefined {
  if (!isEntry(value)) return undefined
  const [id, size, mtimeMs, status, lastSeq, createdAt, updatedAt, title, userId, preview, ...rest] = value
  const [key, bodyHash, since, until] = rest
  const idempotency = key !== null && bodyHash !== null ? { key, bodyHash } : undefined
  const times = { createdAt, updatedAt }
  const texts = { title: title ?? undefined, userId: userId ?? undefined, preview }
  const waiting = { waitsSince: since ?? undefined, deadline: until ?? undefined }
  return { summary: { id, status, lastSeq, ...times, ...texts, ...waiting, idempotency }, stamp: { size, mtimeMs } }
}

/** Checked by hand: a schema takes longer than all other work on an entry, and there may be a hundred thousand. */
function isEntry(value: unknown): value is Entry {
  if (!Array.isArray(value) || value.length !== FIELDS.length) return false
  for (let at = 0; at < FIELDS.length; at++) {
    const field: unknown = value[at]
    // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
    const type = FIELDS[at]!
    if (typeof field !== type.name && !(type.isNullable && field === null)) return false
  }
  return STATUSES.has(value[3])
}

const fieldOf = (name: string, isNullable = false) => ({ name, isNullable })
const [NUMBER, TIME] = [fieldOf('number'), fieldOf('number', true)]
const [TEXT, OPTIONAL] = [fieldOf('string'), fieldOf('string', true)]
const MORE = [OPTIONAL, OPTIONAL, TEXT, OPTIONAL, OPTIONAL, TIME, TIME]
const FIELDS = [TEXT, NUMBER, NUMBER, TEXT, NUMBER, NUMBER, NUMBER, ...MORE]
const STATUSES: ReadonlySet<unknown> = new Set(Status.options)

const BATCH = 1000

function* batchesOf<T>(items: readonly T[]): Iterable<readonly T[]> {
  for (let at = 0; at < items.length; at += BATCH) yield items.slice(at, at + BATCH)
}

/** Returns the length without its LF. */
async function lengthOfLine(file: FileHandle, from: number): Promise<number> {
  const bytes = Buffer.allocUnsafe(LINE_BYTES)
  for (let at = from; ;) {
    const { bytesRead } = await file.read(bytes, 0, LINE_BYTES, at)
    const end = bytes.subarray(0, bytesRead).indexOf(LF)
    if (end !== -1) return at + end - from
    if (bytesRead === 0) throw new Error('the file of summaries ends early')
    at += bytesRead
  }
}
