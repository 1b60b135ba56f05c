/**
 * Events that clients add to the log of a conversation for each other: durable, visible to all clients, never sent to
 * the model.
 */
import type { Event } from '../contract/events/event.ts'
import type { PostClientEvent, PostedClientEvent } from '../contract/events-api.ts'
import { MAX_CLIENT_EVENT_BYTES } from '../contract/events-api.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import { mapStrings } from '../lib/json/map-strings.ts'
import type { Idempotency, PostedKey } from '../state/idempotency.ts'
import { postOnce } from '../idempotency/posted-keys.ts'
import type { LiveState } from './live/live-state.ts'
import type { IntentInbox } from './live/inbox.ts'

export type ClientEventsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly redact: (text: string) => string
  readonly actor: IntentInbox
}

export class ClientEvents {
  readonly #deps: ClientEventsDeps

  constructor(deps: ClientEventsDeps) {
    this.#deps = deps
  }

  /** Accepts an idempotency key, as messages do. Throws a `Problem` if the event is too large. */
  async post({ name, data }: PostClientEvent, idempotency?: Idempotency): Promise<PostedClientEvent> {
    requireSmall(data)
    const { log, state, redact, actor } = this.#deps
    const make = async (): Promise<PostedClientEvent> => {
      const event = { name: redact(name), data: mapStrings(data, redact) }
      const [storedEvent] = await actor.apply({ kind: 'client_event', ...event, ...(idempotency && { idempotency }) })
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one intent of this kind is one event
      const { id, seq } = storedEvent as Event
      return { event_id: id, seq }
    }
    const again = async ({ answer }: PostedKey) => answer
    return await actor.enqueue(() =>
      postOnce(idempotency, { log, redact, remembered: state.current.postedKeys, again, make }),
    )
  }
}

/** Limits the size, because every subscriber of the conversation receives the event. */
function requireSmall(data: unknown): void {
  if (Buffer.byteLength(JSON.stringify(data) ?? '') <= MAX_CLIENT_EVENT_BYTES) return
  throw new Problem(
    'body_too_large',
    `The data of an event has at most ${MAX_CLIENT_EVENT_BYTES} bytes; store larger data in a file and send its path.`,
  )
}
