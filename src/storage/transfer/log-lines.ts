/** The events of one log file as they are stored, of whatever version: the text of each is neither parsed nor changed. */
import { Problem } from '../../contract/problem.ts'
import { codeOf } from '../../lib/error-code.ts'
import { isJoined, readHeader } from '../files/log/event-line.ts'
import { blocksForward } from '../files/log/line-blocks.ts'
import { LogFile } from '../files/log/log-file.ts'
import { findTail } from '../files/log/tail-repair.ts'
import type { EventRow } from '../postgres/append-lanes.ts'
import { damagedAt } from '../shared/stored-event.ts'
import type { LogDigest } from './event-digest.ts'
import { EventDigest } from './event-digest.ts'

const IDLE_MS = 60_000

/**
 * Yields the events up to the end of the last complete write; none if there is no file. One block of the file is in memory.
 * Throws `conversation_damaged`.
 */
export async function* readLogLines(path: string): AsyncGenerator<EventRow, void, void> {
  const file = new LogFile(path, { idleMs: IDLE_MS, onIdle: () => {} })
  try {
    const { end } = await findTail(file, await file.size())
    let seq = 0
    for await (const { bytes, starts, ends } of blocksForward(file, 0, end))
      for (const [i, start] of starts.entries()) {
        // oxlint-disable-next-line typescript/no-non-null-assertion -- each line has an end
        const to = ends[i]!
        const header = readHeader(bytes, start, to)
        if (header?.seq !== ++seq) throw damagedAt(seq, 'is missing or no event')
        const json = bytes.toString('utf8', start, isJoined(bytes, to) ? to - 1 : to)
        yield { seq, at: Date.parse(header.timestamp), type: header.type, source: header.source, json }
      }
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  } finally {
    await file.close(new Problem('unavailable', 'The log was read.'))
  }
}

/** Throws `conversation_damaged`. */
export async function digestOfFile(path: string): Promise<LogDigest> {
  const digest = new EventDigest()
  for await (const { json } of readLogLines(path)) digest.add(json)
  return digest.value
}
