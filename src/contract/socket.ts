/**
 * The WebSocket protocol: frames of JSON, one object each, discriminated by `type`. Stored events have names in
 * PascalCase; frames about the WebSocket itself have names in snake_case.
 */
import { z } from 'zod'
import { CreateConversation, IdempotencyKey } from './conversation.ts'
import { PauseRequest, PostMessage, PostedMessage, RunOptions, RunRequest, RunStarted, StatusAnswer } from './run.ts'
import { ConversationSummaryFrame } from './conversations/summary.ts'
import { Event } from './events/event.ts'
import { HookRequest, HookRequestEnded } from './hooks/client-hooks.ts'
import { StatusUpdate } from './events/conversation-events.ts'
import { Status } from './events/status.ts'
import { TransientEvent } from './events/transient-event.ts'
import { ErrorBody } from './problem.ts'
import { AnswerRequest, RequestAccepted } from './request.ts'
import { PostTask, Task } from './values/task.ts'

/** How long a client without an `Authorization` header has for its first frame, in milliseconds. */
export const AUTH_TIMEOUT_MS = 5000
/** How much it may send until then, in bytes. */
export const MAX_AUTH_BYTES = 4096

/**
 * Close codes beyond those of RFC 6455. Any other from 4400 on is 4000 plus the HTTP status of the `error` before it.
 */
export const CLOSE_CODES = {
  /** The server stops: RFC 6455, "going away". */
  server_closing: 1001,
  lagged: 4000,
  deleted: 4410,
} as const

const InAnswer = z
  .string()
  .min(1)
  .max(200)
  .optional()
  .describe('Any text. The `ack` or `problem` that answers this frame contains it.')

export const AuthFrame = z
  .strictObject({ type: z.literal('auth'), token: z.string().min(1).describe('The master key.') })
  .meta({ id: 'AuthFrame' })
export type AuthFrame = z.infer<typeof AuthFrame>

export const CreateFrame = z
  .strictObject({
    type: z.literal('create'),
    conversation: CreateConversation.describe('The body of POST /conversations.'),
  })
  .meta({ id: 'CreateFrame' })
export type CreateFrame = z.infer<typeof CreateFrame>

const MessageFrame = z
  .strictObject({
    type: z.literal('message'),
    id: InAnswer,
    idempotency_key: IdempotencyKey.optional(),
    ...PostMessage.shape,
  })
  .meta({ id: 'MessageFrame' })

const RunFrame = z
  .strictObject({
    type: z.literal('run'),
    id: InAnswer,
    ...RunOptions.shape,
    after_seq: RunRequest.shape.after_seq,
  })
  .meta({ id: 'RunFrame' })

export const PauseFrame = z
  .strictObject({ type: z.literal('pause'), id: InAnswer, ...PauseRequest.shape })
  .meta({ id: 'PauseFrame' })

export const AnswerFrame = z
  .strictObject({
    type: z.literal('answer'),
    id: InAnswer,
    request_id: z.uuid().toLowerCase().describe('Id of the request.'),
    answer: AnswerRequest,
  })
  .meta({ id: 'AnswerFrame' })

const TaskFrame = z
  .strictObject({
    type: z.literal('task'),
    id: InAnswer,
    idempotency_key: IdempotencyKey.optional(),
    ...PostTask.shape,
  })
  .meta({ id: 'TaskFrame' })

const CancelTaskFrame = z
  .strictObject({ type: z.literal('cancel_task'), id: InAnswer, task_id: z.uuid().toLowerCase() })
  .meta({ id: 'CancelTaskFrame' })

/** Frames that a client may send on a conversation's WebSocket. */
export const CommandFrame = z
  .discriminatedUnion('type', [MessageFrame, RunFrame, PauseFrame, AnswerFrame, TaskFrame, CancelTaskFrame])
  .meta({ id: 'CommandFrame' })
export type CommandFrame = z.infer<typeof CommandFrame>

const Cursor = z.string().describe('Opaque position to resume from.')
const AfterSeq = z.int().nonnegative().describe('Position to resume from, as `after_seq`.')

/** The subscription is active: all later events are sent. */
const ConversationReadyFrame = z
  .object({ type: z.literal('ready'), conversation_id: z.uuid(), status: Status, after_seq: AfterSeq })
  .meta({ id: 'ConversationReadyFrame' })

const FirehoseReadyFrame = z.object({ type: z.literal('ready'), cursor: Cursor }).meta({ id: 'FirehoseReadyFrame' })

/**
 * The first frame of a WebSocket that created its conversation. Not an event of the log: it has no `seq`, nor an `id`.
 */
export const ConversationCreatedFrame = StatusUpdate.pick({ type: true, status: true, previous_status: true })
  .extend({ reason: z.literal('created'), conversation_id: z.uuid(), timestamp: z.iso.datetime() })
  .meta({ id: 'ConversationCreatedFrame' })
export type ConversationCreatedFrame = z.infer<typeof ConversationCreatedFrame>

export const AckFrame = z
  .object({
    type: z.literal('ack'),
    id: z.string().optional().describe('`id` of the answered frame, if it had one.'),
    of: z.enum(CommandFrame.options.map((option) => option.shape.type.value)),
    result: z
      .union([PostedMessage, RunStarted, RequestAccepted, StatusAnswer, Task])
      .describe('The response of the route with the same name.'),
  })
  .meta({ id: 'AckFrame' })
export type AckFrame = z.infer<typeof AckFrame>

/** A frame of the client that was not executed; the WebSocket stays open. */
export const ProblemFrame = z
  .object({ type: z.literal('problem'), id: z.string().optional(), ...ErrorBody.shape })
  .meta({ id: 'ProblemFrame' })
export type ProblemFrame = z.infer<typeof ProblemFrame>

/** Sent after a period in which `types` filtered all events out. */
const ConversationReachedFrame = z
  .object({ type: z.literal('reached'), after_seq: AfterSeq })
  .meta({ id: 'ConversationReachedFrame' })

const FirehoseReachedFrame = z
  .object({ type: z.literal('reached'), cursor: Cursor })
  .meta({ id: 'FirehoseReachedFrame' })

/** Sent after 15 seconds without another frame, so that a reader notices a lost connection. */
const HeartbeatFrame = z.object({ type: z.literal('heartbeat') }).meta({ id: 'HeartbeatFrame' })

/** The last frame before the WebSocket is closed, with code 4410. */
export const DeletedFrame = z.object({ type: z.literal('deleted') }).meta({ id: 'DeletedFrame' })

/** The last frame before the WebSocket is closed, with code 1001. */
export const ServerClosingFrame = z.object({ type: z.literal('server_closing') }).meta({ id: 'ServerClosingFrame' })

/**
 * The reader was too slow. The last frame before the WebSocket is closed, with code 4000; reconnect with your cursor.
 */
export const LaggedFrame = z.object({ type: z.literal('lagged') }).meta({ id: 'LaggedFrame' })

/** The last frame before the WebSocket is closed, with code 4000 and the status of the error. */
export const ErrorFrame = z.object({ type: z.literal('error'), ...ErrorBody.shape }).meta({ id: 'ErrorFrame' })

/** Sent live on the firehose. Later readers do not get the events of deleted conversations. */
export const ConversationDeletedFrame = z
  .object({ type: z.literal('conversation_deleted'), conversation_id: z.uuid() })
  .meta({ id: 'ConversationDeletedFrame' })

/** A durable event on the firehose. */
const FirehoseEventFrame = z
  .intersection(z.object({ cursor: Cursor }), Event)
  .describe('The stored event, and the cursor to resume from.')
  .meta({ id: 'FirehoseEventFrame' })

const END_FRAMES = [ServerClosingFrame, LaggedFrame, ErrorFrame] as const

/** Frames of the server on a conversation's WebSocket; `TransientEvent` only with `deltas`, requests with `hook_client`. */
export const ConversationServerFrame = z
  .union([
    ConversationReadyFrame,
    ConversationCreatedFrame,
    Event,
    TransientEvent,
    HookRequest,
    HookRequestEnded,
    AckFrame,
    ProblemFrame,
    ConversationReachedFrame,
    HeartbeatFrame,
    DeletedFrame,
    ...END_FRAMES,
  ])
  .meta({ id: 'ConversationServerFrame' })

/** Frames of the server on the firehose's WebSocket; `TransientEvent` only with `deltas`, rows only with `summaries`. */
export const FirehoseServerFrame = z
  .union([
    FirehoseReadyFrame,
    FirehoseEventFrame,
    TransientEvent,
    ConversationSummaryFrame,
    ConversationDeletedFrame,
    FirehoseReachedFrame,
    HeartbeatFrame,
    ...END_FRAMES,
  ])
  .meta({ id: 'FirehoseServerFrame' })
