/** Reads the event stream of the owner of a conversation: the records as it has published them, and why the stream ends. */
import type { Readable } from 'node:stream'
import type { HookFrame } from '../contract/hooks/client-hooks.ts'
import type { TransientEvent } from '../contract/events/transient-event.ts'
import type { FeedBatch, FeedEnd } from '../events/feed-buffer.ts'
import { ownRecord } from '../events/request-record.ts'
import type { PublishedRecord } from '../events/sse-frame.ts'
import { afterRead } from '../lib/bounded-wait.ts'
import type { SseMessage } from '../lib/sse-decoder.ts'
import { createSseDecoder } from '../lib/sse-decoder.ts'
import { storedFromText } from '../storage/shared/stored-event.ts'

/** The owner sends something every 15 s: after this time without, in milliseconds, its machine may be gone. */
const SILENCE_MS = 25_000

const ENDS: Readonly<Record<string, FeedEnd>> = { deleted: 'deleted', server_closing: 'closing', lagged: 'lagged' }

/** The first fields of a stored event. The `id` of a frame does not tell: by the standard it also holds for later frames without one. */
const STORED = /^\{"seq":(\d+),/

type Batches = AsyncGenerator<Pick<FeedBatch, 'records' | 'end'>, void, void>

/** Its loop throws when the connection is cut off, the owner is silent, or its stream fails. */
export function readOwnerStream(body: Readable): Batches {
  // The connection may be cut off before the loop begins, which then throws the same error.
  body.on('error', () => {})
  return batchesOf(body)
}

async function* batchesOf(body: Readable): Batches {
  const decoder = createSseDecoder()
  const giveUp = () => body.destroy(new Error('The owner of the conversation has sent nothing for too long.'))
  const timer = setTimeout(() => afterRead(giveUp), SILENCE_MS).unref()
  try {
    for await (const text of body.setEncoding('utf8')) {
      timer.refresh()
      const messages = decoder.push(String(text))
      const end = messages.map(({ event }) => ENDS[event]).find((each) => each !== undefined)
      const records = messages.filter(({ event }) => ENDS[event] === undefined).map(recordOf)
      yield { records, ...(end && { end }) }
    }
  } finally {
    clearTimeout(timer)
    body.destroy()
  }
}

function recordOf({ event: type, data }: SseMessage): PublishedRecord {
  const [, seq] = STORED.exec(data) ?? []
  if (seq !== undefined) return storedFromText({ seq: Number(seq), type }, data)
  if (type === 'error') throw new Error(`The stream of the owner has failed: ${data}`)
  // oxlint-disable typescript/no-unsafe-type-assertion -- another instance of this server has written it
  if (type === 'HookRequest' || type === 'HookRequestEnded') return ownRecord(JSON.parse(data) as HookFrame)
  const event = JSON.parse(data) as TransientEvent
  // oxlint-enable typescript/no-unsafe-type-assertion
  return { seq: undefined, type: event.type, event, json: data }
}
