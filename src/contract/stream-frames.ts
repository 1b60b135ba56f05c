/** The `data` of an event stream's (SSE) frames, one union discriminated by `type`. */
import { z } from 'zod'
import { ConversationSummaryFrame } from './conversations/summary.ts'
import { Event } from './events/event.ts'
import { TransientEvent } from './events/transient-event.ts'
import { HookRequest, HookRequestEnded } from './hooks/client-hooks.ts'
import { ConversationDeletedFrame, DeletedFrame, ErrorFrame, LaggedFrame, ServerClosingFrame } from './socket.ts'

const EVENTS = [...Event.options, ...TransientEvent.options] as const
const ENDS = [ServerClosingFrame, LaggedFrame, ErrorFrame] as const

export const StreamEvent = z
  .discriminatedUnion('type', [...EVENTS, HookRequest, HookRequestEnded, DeletedFrame, ...ENDS])
  .meta({
    id: 'StreamEvent',
    description:
      '`data` of one frame: a stored event, a transient one (with `deltas`), a request to a client (with `hook_client`), or why the stream ends.',
  })

export const FirehoseStreamEvent = z
  .discriminatedUnion('type', [...EVENTS, ConversationSummaryFrame, ConversationDeletedFrame, ...ENDS])
  .meta({
    id: 'FirehoseStreamEvent',
    description:
      '`data` of one frame of the firehose: an event of any conversation, a row (with `summaries`), or why the stream ends.',
  })

/**
 * The frame for clients that parse a stream themselves; only in the API description.
 * @public
 */
export const StreamFrame = z
  .object({
    id: z.string().optional().describe('The cursor: the seq of a stored event. Transient events have none.'),
    event: z.string().describe('The `type` of `data`.'),
    data: StreamEvent,
  })
  .meta({ id: 'StreamFrame', description: 'One frame of the stream of a conversation, `data` parsed.' })
