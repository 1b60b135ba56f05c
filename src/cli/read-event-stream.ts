/** Reads the events of an SSE response of this server. */
import type { Event } from '../contract/events/event.ts'
import type { TransientEvent } from '../contract/events/transient-event.ts'
import { createSseDecoder } from '../lib/sse-decoder.ts'

/** Ends with the stream. Leaving the loop closes the connection. Throws if the server refused the stream. */
export async function* readEventStream(response: Response): AsyncGenerator<Event | TransientEvent, void> {
  if (!response.ok || !response.body) throw new Error(`no event stream: ${response.status} ${await response.text()}`)
  const decoder = createSseDecoder()
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    // The server itself wrote this, so it is trusted to follow the contract. Final frames have no type inside.
    for (const { data } of decoder.push(piece)) {
      const frame: unknown = JSON.parse(data)
      if (isEvent(frame)) yield frame
    }
  }
}

const isEvent = (frame: unknown): frame is Event | TransientEvent =>
  typeof frame === 'object' && frame !== null && 'type' in frame
