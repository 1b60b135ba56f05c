/**
 * Writes a log that begins with events of another one: under a temporary name until it is complete and durable, so that
 * nobody ever finds half of it.
 */
import { dirname } from 'node:path'
import type { Event, EventDraft } from '../../../contract/events/event.ts'
import { replaceFile, syncDirectory } from '../../../lib/durable-file.ts'
import { textOfWrite } from './event-line.ts'
import { serialiseCopy, serialiseDraft, storedFromDraft } from '../../shared/stored-event.ts'

export type CopiedLog = {
  readonly conversationId: string
  /** The events from seq 1 on, without gaps. */
  readonly events: AsyncIterable<Event>
  /** Returns the events that follow; called after the last of `events` was read. */
  readonly ending: () => readonly EventDraft[]
  readonly now: () => number
}

/** Characters written at a time. */
const CHUNK = 1024 * 1024

/** `path` must not exist yet. A crash leaves a temporary file with the same name and a suffix. */
export async function writeCopiedLog(path: string, log: CopiedLog): Promise<void> {
  await replaceFile(path, chunksOf(linesOf(log)), { draft: `${path}.copying` })
  await syncDirectory(dirname(dirname(path)))
}

async function* linesOf({ conversationId, events, ending, now }: CopiedLog): AsyncGenerator<string, void, void> {
  let [seq, ms] = [0, 0]
  for await (const event of events) {
    if (event.seq !== seq + 1) throw new Error(`Event ${event.seq} does not follow event ${seq}.`)
    seq = event.seq
    ms = Date.parse(event.timestamp)
    yield serialiseCopy(event, conversationId)
  }
  ms = Math.max(ms, now())
  for (const draft of ending()) yield storedFromDraft(++seq, serialiseDraft(draft, { ms, conversationId })).json
}

async function* chunksOf(lines: AsyncIterable<string>): AsyncGenerator<string, void, void> {
  let chunk = ''
  for await (const line of lines) {
    chunk += textOfWrite([line])
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = ''
  }
  yield chunk
}
