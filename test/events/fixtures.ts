/** What the tests of the event store, log and feed are written with. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EventDraft } from '../../src/contract/events/event.ts'
import type { TransientDraft } from '../../src/contract/events/transient-event.ts'
import { NO_USAGE } from '../../src/contract/values/message.ts'
import { EventLog } from '../../src/events/event-log.ts'
import type { StoredEvent, StoredLog } from '../../src/events/event-store.ts'
import { createJsonlStore } from '../../src/storage/files/log/jsonl-store.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'
import { takeTime } from '../support/take-time.ts'

export type TempDirectory = AsyncDisposable & { readonly path: string }

export async function tempDirectory(): Promise<TempDirectory> {
  const path = await mkdtemp(join(tmpdir(), 'events-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

export function message(text: string): EventDraft {
  return { type: 'UserMessage', source: 'user', content: [{ type: 'text', text }], run: false }
}

export function toolResult(output: unknown): EventDraft {
  const fields = { tool_use_id: 'call-1', output, is_error: false, duration_ms: 1 }
  return { type: 'ToolResult', source: 'environment', ...fields }
}

export function answer(messageId: string, text: string): EventDraft {
  const about = { tool_use_ids: [], model: 'scripted', usage: NO_USAGE, stop_reason: 'stop' }
  return { type: 'AssistantMessage', source: 'agent', message_id: messageId, text, content: [], ...about }
}

export function delta(messageId: string, offset: number, text: string): TransientDraft {
  return { type: 'AssistantDelta', message_id: messageId, index: 0, offset, text_delta: text }
}

/** Appends and expects it to succeed. */
export async function append(log: StoredLog, ...drafts: EventDraft[]): Promise<readonly StoredEvent[]> {
  const outcome = await log.append(drafts)
  if (outcome.kind !== 'appended') throw new Error(`expected to append, got ${outcome.kind}`)
  return outcome.events
}

export function textOf(stored: StoredEvent): string {
  const { event } = stored
  if (event.type !== 'UserMessage' || event.content[0]?.type !== 'text') throw new Error(`no message: ${stored.json}`)
  return event.content[0].text
}

export function seqsOf(events: readonly { seq: number | undefined }[]): (number | undefined)[] {
  return events.map(({ seq }) => seq)
}

/** All events there are, page by page, as any reader gets them. */
export async function readAll(log: Pick<StoredLog, 'read'>, limit = 100): Promise<StoredEvent[]> {
  const all: StoredEvent[] = []
  for (let afterSeq: number | undefined = 0; afterSeq !== undefined;) {
    const page = await log.read({ afterSeq, limit })
    all.push(...page.events)
    afterSeq = page.scannedTo
  }
  return all
}

export type SharedLog = AsyncDisposable & { log: EventLog; errors: unknown[]; id: string; directory: string }

/** A log on a real file, as its conversation and its readers share it. */
export async function sharedLog(): Promise<SharedLog> {
  const directory = await tempDirectory()
  const id = uuid7()
  const errors: unknown[] = []
  const store = createJsonlStore({ directory: directory.path })
  const log = new EventLog({ log: await store.create(id), onListenerError: (error) => errors.push(error) })
  const dispose = async () => {
    await log.close('closing')
    await directory[Symbol.asyncDispose]()
  }
  return { log, errors, id, directory: directory.path, [Symbol.asyncDispose]: dispose }
}

/** The same log, but its appends are reported late: durable and readable `ms` before the promise says so. */
export function reportedLate(stored: StoredLog, ms: (call: number) => number): StoredLog {
  let calls = 0
  return {
    conversationId: stored.conversationId,
    epoch: stored.epoch,
    get head() {
      return stored.head
    },
    append: async (...args) => {
      const delay = ms(calls++)
      const outcome = await stored.append(...args)
      await takeTime(delay)
      return outcome
    },
    read: (options) => stored.read(options),
    find: (eventId) => stored.find(eventId),
    count: (filter) => stored.count(filter),
    close: (why) => stored.close(why),
  }
}
