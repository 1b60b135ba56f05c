/** Events that clients put into the log of a conversation for each other: durable and shown to all, but to the model. */
import type { Event } from '../contract/events/event.ts'
import type { PostClientEvent, PostedClientEvent } from '../contract/events/events-api.ts'
import { MAX_CLIENT_EVENT_BYTES } from '../contract/events/events-api.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import { mapStrings } from '../lib/json/map-strings.ts'
import type { Command } from './state/commands.ts'
import type { Idempotency, PostedKey } from './idempotency/idempotency.ts'
import { postOnce } from './idempotency/posted-keys.ts'
import type { State } from './state/state.ts'

export type ClientEventsDeps = {
  readonly log: EventLog
  readonly redact: (text: string) => string
  /** As it holds now. */
  readonly state: () => State
  /** Runs the work when its turn among the commands has come. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** Decides and stores; in turn only. */
  readonly carryOut: (command: Command) => Promise<readonly Event[]>
}

export interface ClientEvents {
  /** With a key as for a message. Throws a `Problem` for what is too large. */
  post(request: PostClientEvent, idempotency?: Idempotency): Promise<PostedClientEvent>
}

export function createClientEvents({ log, redact, state, inTurn, carryOut }: ClientEventsDeps): ClientEvents {
  return {
    async post({ name, data }, idempotency) {
      requireSmall(data)
      const make = async () => {
        const event = { name: redact(name), data: mapStrings(data, redact) }
        const [stored] = await carryOut({ kind: 'client_event', ...event, ...(idempotency && { idempotency }) })
        return { event_id: stored!.id, seq: stored!.seq }
      }
      const again = async ({ answer }: PostedKey) => answer
      return await inTurn(() => postOnce(idempotency, { log, redact, remembered: state().postedKeys, again, make }))
    },
  }
}

/** Everybody who follows the conversation is sent it. */
function requireSmall(data: unknown): void {
  if (Buffer.byteLength(JSON.stringify(data) ?? '') <= MAX_CLIENT_EVENT_BYTES) return
  throw new Problem(
    'body_too_large',
    `The data of an event has at most ${MAX_CLIENT_EVENT_BYTES} bytes; put more into a file and name that.`,
  )
}
