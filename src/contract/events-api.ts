/** Requests for events: the queries of the list, the count and the stream, and their responses. */
import { z } from 'zod'
import { ConversationId } from './conversation.ts'
import { HookClientName } from './hooks/client-hooks.ts'
import { Ticket } from './key.ts'
import { Flag, PageLimit, listOf } from './values/page.ts'
import { Event, EVENT_TYPES, EventTypeName } from './events/event.ts'
import { TRANSIENT_TYPES } from './events/transient-event.ts'

export const MAX_CLIENT_EVENT_BYTES = 256 * 1024

/** There are fewer types. */
const MAX_TYPES = 100

const StreamTypeName = z
  .enum([...EVENT_TYPES, ...TRANSIENT_TYPES])
  .meta({ id: 'StreamEventType', description: 'Type of a stored event, or of one that is only streamed.' })

const Seq = z.coerce.number().int().nonnegative()

/** Refuses a name that no event has: it would never match. */
function typeNames<const T extends string>(knownTypes: z.ZodEnum<{ [K in T]: K }>) {
  return listOf(knownTypes, MAX_TYPES).describe(
    'Only these types. Repeat the parameter, or separate names with commas.',
  )
}

const EventFilter = {
  types: typeNames(EventTypeName).optional(),
  source: z.enum(['user', 'agent', 'environment']).optional(),
  q: z.string().min(1).max(200).optional().describe('Part of a text in the event, case-insensitive.'),
  since: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, inclusive.'),
  until: z.iso.datetime({ offset: true }).optional().describe('RFC 3339, exclusive.'),
}

export const CountEvents = z.strictObject(EventFilter)
export type CountEvents = z.infer<typeof CountEvents>

const MaxText = z.coerce
  .number()
  .int()
  .min(100)
  .max(10_000_000)
  .optional()
  .describe(
    'Cuts each text after so many characters, and leaves out images that are longer in base64. `cut_texts` of the event lists what was cut.',
  )

export const ListEvents = z.strictObject({
  ...EventFilter,
  after_seq: Seq.optional().describe('Only events with a higher seq.'),
  before_seq: Seq.optional().describe('Only events with a lower seq.'),
  active: Flag.optional().describe('`true`: without the events that were rewound.'),
  order: z.enum(['asc', 'desc']).default('asc'),
  limit: PageLimit,
  max_text: MaxText,
  page_id: z
    .string()
    .optional()
    .describe(
      '`next_page_id` of the previous page. A page of large events, and a filtered one, can have fewer items than `limit` and still have a next page.',
    ),
})
export type ListEvents = z.infer<typeof ListEvents>

export const GetEventPart = z.strictObject({
  pointer: z
    .string()
    .max(2000)
    .describe('JSON Pointer (RFC 6901) to the part, such as `/output/stdout`, or the `pointer` of one of `cut_texts`.'),
})

export const EventPage = z
  .object({ items: z.array(Event), next_page_id: z.string().nullable() })
  .meta({ id: 'EventPage' })

/** Names and data are the client's own; the agent does not see them. */
export const PostClientEvent = z
  .strictObject({
    name: z.string().min(1).max(200),
    data: z.unknown().optional().describe(`Any JSON, up to ${MAX_CLIENT_EVENT_BYTES} bytes.`),
  })
  .meta({ id: 'PostClientEvent', examples: [{ name: 'deployed', data: { environment: 'staging' } }] })
export type PostClientEvent = z.infer<typeof PostClientEvent>

export const PostedClientEvent = z
  .object({ event_id: z.uuid(), seq: z.int().positive() })
  .meta({ id: 'PostedClientEvent' })
export type PostedClientEvent = z.infer<typeof PostedClientEvent>
export const StreamEvents = z.strictObject({
  after_seq: Seq.optional().describe(
    'Start after this seq. 0: from the beginning. Absent: live events only. `Last-Event-ID` takes precedence.',
  ),
  types: typeNames(StreamTypeName).optional(),
  deltas: Flag.default(false).describe('Include transient events, such as text while the model writes it.'),
  max_text: MaxText,
  hook_client: HookClientName.optional().describe(
    'Also the `HookRequest`s to this client, those that wait first. It has registered its hooks with `PUT client-hooks`.',
  ),
  ticket: Ticket,
})
export type StreamEvents = z.infer<typeof StreamEvents>

/** The query of the WebSocket that creates its conversation: it receives all of its events. */
export const StreamNewConversation = StreamEvents.omit({
  after_seq: true,
  hook_client: true,
  max_text: true,
  ticket: true,
}).extend({
  create: z
    .enum(['defaults', 'frame'])
    .default('defaults')
    .describe(
      '`frame`: the first frame is `create`, with the body of POST /conversations. `defaults`: the same as an empty body.',
    ),
})
export type StreamNewConversation = z.infer<typeof StreamNewConversation>

/** Headers of both streams. */
export const ResumeHeaders = z.object({
  'last-event-id': z
    .string()
    .optional()
    .describe('The last `id` that the client received. The stream continues after it.'),
})

const MAX_CONVERSATIONS = 100

export const StreamFirehose = StreamEvents.omit({ after_seq: true, hook_client: true, max_text: true }).extend({
  cursor: z
    .string()
    .max(100)
    .optional()
    .describe(
      'Start after this `id` of the firehose. 0: from the beginning. Absent: live events only. `Last-Event-ID` takes precedence.',
    ),
  conversation_ids: listOf(ConversationId, MAX_CONVERSATIONS)
    .optional()
    .describe('Only events of these conversations. Repeat the parameter, or separate ids with commas.'),
  summaries: Flag.default(false).describe(
    'Also `ConversationSummary`: the row of `GET /conversations/summaries` of each conversation that changes, whatever `types` says; at most one of a conversation in 100 ms.',
  ),
})
export type StreamFirehose = z.infer<typeof StreamFirehose>
