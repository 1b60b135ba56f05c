/** The two event streams as async iterables: the events of one conversation, and those of all conversations. */
import type { z } from 'zod'
import type { EventOf, EventType } from '../../contract/events/event.ts'
import type { ConversationSummaryFrame } from '../../contract/conversations/summary.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import type { HookFrame } from '../../contract/hooks/client-hooks.ts'
import type { ConversationDeletedFrame } from '../../contract/socket.ts'
import { pathOf } from '../request/url.ts'
import type { FollowRequest } from './follow.ts'
import { follow } from './follow.ts'
import { isDelta, LiveText } from './live-text.ts'
import type { StreamSource } from './stream-source.ts'

/** What both streams accept. */
type StreamOptions<T extends EventType> = Pick<FollowRequest, 'signal' | 'onDisconnect' | 'giveUpAfterMs'> & {
  /** Selects these types of stored events. Default: all. */
  readonly types?: readonly T[] | undefined
  /** Adds transient events, such as text while the model writes it. Default: false. */
  readonly deltas?: boolean | undefined
}

export type EventsOptions<T extends EventType = EventType> = StreamOptions<T> & {
  /** Selects events with a higher seq. Default: 0, all events. */
  readonly after?: number | undefined
  /** Adds the hooks that this client is asked, which it has registered. */
  readonly hook_client?: string | undefined
  /** Texts of stored events are cut after so many characters, and `cut_texts` lists them: see `getEventPart`. */
  readonly max_text?: number | undefined
}

/** A stored event, a transient one, or a hook that a client is asked. */
export type StreamedEvent<T extends EventType = EventType> = EventOf<T> | TransientEvent | HookFrame

export type FirehoseOptions<T extends EventType = EventType> = StreamOptions<T> & {
  /** Start after this `cursor` of an event; `0`: from the beginning. Default: only new events. */
  readonly cursor?: string | undefined
  readonly conversation_ids?: readonly string[] | undefined
  /** Adds the row of each conversation that changes, as in `conversations.summaries()`. Default: false. */
  readonly summaries?: boolean | undefined
}

/** An event of any conversation, and the cursor to continue after it. Transient events and rows do not move the cursor. */
export type FirehoseItem<T extends EventType = EventType> = {
  readonly cursor: string | undefined
  readonly event: EventOf<T> | TransientEvent | ConversationSummaryFrame | z.output<typeof ConversationDeletedFrame>
}

type Streaming = { readonly source: StreamSource; readonly maxRetries: number }

/** Yields each stored event once and in order of `seq`, and each piece of live text once. */
export async function* eventsOf<T extends EventType>(
  { source, maxRetries }: Streaming,
  id: string,
  { after = 0, types, deltas, hook_client, max_text, ...options }: EventsOptions<T>,
): AsyncGenerator<StreamedEvent<T>> {
  const path = pathOf('/conversations/{id}/events/stream', { id })
  const live = new LiveText()
  let seq = after
  for await (const { data } of follow(source, {
    ...options,
    path,
    cursor: String(after),
    query: { types, deltas, hook_client, max_text },
    maxRetries,
  })) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server sends the events of the contract
    const event = data as StreamedEvent<T>
    if ('seq' in event) {
      if (event.seq <= seq) continue
      seq = event.seq
    }
    const fresh = isDelta(event) ? live.fresh(event) : event
    if (fresh) yield fresh
  }
}

/** Yields each stored event once, and those of a conversation in order. */
export async function* firehoseEvents<T extends EventType>(
  { source, maxRetries }: Streaming,
  { cursor, types, deltas, conversation_ids, summaries, ...options }: FirehoseOptions<T>,
): AsyncGenerator<FirehoseItem<T>> {
  const live = new LiveText()
  const query = { types, deltas, conversation_ids, summaries }
  for await (const frame of follow(source, { ...options, path: '/firehose', cursor, query, maxRetries })) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server sends the events of the contract
    const event = frame.data as FirehoseItem<T>['event']
    const fresh = isDelta(event) ? live.fresh(event) : event
    if (fresh) yield { cursor: frame.cursor, event: fresh }
  }
}
