/** Finds the valid end of a log whose last write may have been interrupted, and cuts off the rest. */
import { Problem } from '../../../contract/problem.ts'
import type { EventHeader } from '../../../events/event-header.ts'
import { LF, isJoined, verifyLine } from './event-line.ts'
import { replaceFile } from '../../../lib/durable-file.ts'
import { blocksBackward } from './line-blocks.ts'
import type { Source } from './line-blocks.ts'
import type { LogFile } from './log-file.ts'
import { isOutOfRoom } from '../../../lib/error-code.ts'

/** The end of the valid part: its last event, and the byte after it. */
export type Tail = { readonly last: EventHeader | undefined; readonly end: number }

/**
 * Finds the end of the last write that is completely on disk.
 *
 * Each write was synced before the next one began, so a crash can have damaged only the last one; but anywhere in it:
 * its pages reach the disk in any order, and a page that never did reads as zeros. So the last write counts only if each of
 * its lines is valid. An invalid line before it was durable once: that is damage, not a torn tail, and is left alone,
 * to be reported when it is read.
 */
export async function findTail(source: Source, size: number): Promise<Tail> {
  let foundTail: (Tail & { last: EventHeader; firstSeq: number }) | undefined
  const lastLf = await findLastLf(source, size)
  walk: for await (const { bytes, offset, starts, ends } of blocksBackward(source, 0, lastLf + 1)) {
    for (let i = starts.length - 1; i >= 0; i--) {
      // oxlint-disable-next-line typescript/no-non-null-assertion -- the index is within bounds
      const [start, end] = [starts[i]!, ends[i]!]
      if (foundTail && !isJoined(bytes, end) && !hasZeros(bytes, start, end)) break walk
      const header = verifyLine(bytes, start, end)
      if (foundTail === undefined) {
        // A write is not complete without its last line, whatever else of it is present.
        const isLastOfWrite = header !== undefined && !isJoined(bytes, end)
        if (isLastOfWrite) foundTail = { last: header, end: offset + end + 1, firstSeq: header.seq }
      } else if (header && header.seq === foundTail.firstSeq - 1) {
        foundTail.firstSeq = header.seq
      } else {
        // The write has a hole: continue with the write before it.
        foundTail = undefined
      }
    }
  }
  if (foundTail) return { last: foundTail.last, end: foundTail.end }
  await refuseUnlessTornFirstWrite(source, size)
  return { last: undefined, end: 0 }
}

/** Truncates the file at `end`, after copying the rest to another file. Returns a sentence that reports it. */
export async function cutTail(file: LogFile, path: string, from: Tail, size: number, now: number): Promise<string> {
  const tornPath = `${path}.torn-${new Date(now).toISOString().replaceAll(':', '-')}`
  const isKept = await setAside(file, from.end, size, tornPath)
  await file.truncate(from.end)
  await file.sync()
  const what = `An unfinished write of ${size - from.end} bytes after event ${from.last?.seq ?? 0} was cut off`
  return isKept ? `${what} and kept in ${tornPath}.` : `${what}; there was no room to keep it.`
}

async function findLastLf(source: Source, size: number): Promise<number> {
  const STEP_BYTES = 64 * 1024
  for (let end = size; end > 0; end -= STEP_BYTES) {
    const start = Math.max(0, end - STEP_BYTES)
    const lineFeed = (await source.read(start, end - start)).lastIndexOf(LF)
    if (lineFeed !== -1) return start + lineFeed
  }
  return -1
}

function hasZeros(bytes: Buffer, start: number, end: number): boolean {
  const at = bytes.indexOf(0, start)
  return at !== -1 && at < end
}

/**
 * Takes the first write for torn if there is no valid one. But a file that was something else must not become an empty
 * conversation, so it must begin as the first line does, as far as it goes, or with a page that was never written.
 */
async function refuseUnlessTornFirstWrite(source: Source, size: number): Promise<void> {
  const begin = '{"seq":1,'
  const bytes = await source.read(0, Math.min(size, begin.length))
  if (begin.startsWith(bytes.toString('latin1')) || bytes[0] === 0) return
  throw new Problem(
    'conversation_damaged',
    'The event log of this conversation holds no event. Restore events.jsonl.',
    {
      details: { line: 1 },
    },
  )
}

/** Returns false if the disk has no room for it: bytes that were never confirmed must not keep a log unavailable. */
async function setAside(file: LogFile, from: number, to: number, path: string): Promise<boolean> {
  try {
    await replaceFile(path, bytesOf(file, from, to))
    return true
  } catch (error) {
    if (isOutOfRoom(error)) return false
    throw error
  }
}

async function* bytesOf(file: LogFile, from: number, to: number): AsyncGenerator<Buffer, void, void> {
  const STEP_BYTES = 1024 * 1024
  for (let at = from; at < to; at += STEP_BYTES) yield await file.read(at, Math.min(STEP_BYTES, to - at))
}
