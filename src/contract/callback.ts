/**
 * Callbacks on the wire: where the events of a conversation are delivered, what is delivered, and with which outcome.
 */
import { z } from 'zod'
import { Event, EventTypeName } from './events/event.ts'
import { CallbackHeaders, CallbackUrl } from './values/callback-address.ts'
import { MASK } from './values/llm-config.ts'
import { Flag, OnlyPage, PageLimit } from './values/page.ts'

/** The limit per conversation. */
export const MAX_CALLBACKS = 20
const EventTypes = z.array(EventTypeName).min(1).describe('Event types to deliver. Default: all.')

export const CreateCallback = z
  .strictObject({ url: CallbackUrl, events: EventTypes.optional(), headers: CallbackHeaders.optional() })
  .meta({
    id: 'CreateCallback',
    examples: [{ url: 'https://example.com/agent-events', events: ['Result', 'RequestOpened'] }],
  })
export type CreateCallback = z.infer<typeof CreateCallback>

/** Absent fields are unchanged. */
export const UpdateCallback = z
  .strictObject({
    url: CallbackUrl.optional().describe(
      'If the origin (scheme, host and port) changes, stored headers are deleted unless they are sent again, and the callback gets a new secret, which the response contains.',
    ),
    events: EventTypes.nullable().optional().describe('`null`: all types.'),
    headers: CallbackHeaders.optional().describe(
      'Replaces all headers. Sending a masked value back keeps the stored value.',
    ),
    enabled: z
      .boolean()
      .optional()
      .describe('`true` also retries waiting deliveries at once. A disabled callback continues where it stopped.'),
  })
  .meta({ id: 'UpdateCallback', examples: [{ enabled: true }] })
export type UpdateCallback = z.infer<typeof UpdateCallback>

export const Callback = z
  .object({
    id: z.uuid(),
    url: z.string(),
    events: z.array(z.string()).optional().describe('Absent: all types.'),
    headers: z.record(z.string(), z.string()).optional().describe('Values are masked.'),
    enabled: z.boolean(),
    disabled_reason: z.string().optional().describe('Why the server disabled it.'),
    cursor: z
      .int()
      .nonnegative()
      .describe('All events up to this seq were delivered, skipped, or do not match this callback.'),
    previous_secret_until: z.iso
      .datetime()
      .optional()
      .describe('After a rotation: until then deliveries are also signed with the previous secret.'),
    failing_since: z.iso.datetime().optional().describe('All attempts have failed since this time.'),
    next_attempt_at: z.iso.datetime().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Callback' })
export type Callback = z.infer<typeof Callback>

export const CreatedCallback = Callback.extend({
  secret: z.string().describe('Signing secret of the deliveries (`whsec_…`). It is returned only once.'),
}).meta({ id: 'CreatedCallback' })
export type CreatedCallback = z.infer<typeof CreatedCallback>

const MAX_OVERLAP_SECONDS = 30 * 24 * 3600

export const RotateCallbackSecret = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(MAX_OVERLAP_SECONDS)
      .default(24 * 3600)
      .describe('How long deliveries are also signed with the previous secret.'),
  })
  .meta({ id: 'RotateCallbackSecret', examples: [{ overlap_seconds: 86_400 }] })
export type RotateCallbackSecret = z.infer<typeof RotateCallbackSecret>

export const UpdatedCallback = Callback.extend({
  secret: z
    .string()
    .optional()
    .describe('After a change to another origin: the new signing secret. It is returned only once.'),
  dropped: z
    .array(z.literal('headers'))
    .optional()
    .describe('After a change to another origin: the stored headers were deleted, so that they are not sent there.'),
}).meta({ id: 'UpdatedCallback' })
export type UpdatedCallback = z.infer<typeof UpdatedCallback>

/** A list like any other, with only one page. */
export const CallbackPage = z
  .object({ items: z.array(Callback).describe('In order of creation.'), next_page_id: OnlyPage })
  .meta({ id: 'CallbackPage' })

export const Delivery = z
  .object({
    id: z.uuid(),
    event_id: z.uuid().describe('The `webhook-id` of every attempt.'),
    seq: z.int().positive(),
    type: z.string(),
    status: z
      .enum(['pending', 'delivered', 'failed'])
      .describe('`failed`: the receiver refused this event on every attempt, and it was skipped.'),
    attempts: z.int().positive(),
    response_status: z.int().optional().describe('Status of the last attempt. Absent without a response.'),
    error: z.string().optional().describe('Why the last attempt failed.'),
    duration_ms: z.number().nonnegative().describe('Duration of the last attempt.'),
    first_attempt_at: z.iso.datetime(),
    last_attempt_at: z.iso.datetime(),
    next_attempt_at: z.iso.datetime().optional(),
  })
  .meta({ id: 'Delivery' })
export type Delivery = z.infer<typeof Delivery>

export const DeliveryPage = z
  .object({ items: z.array(Delivery), next_page_id: z.string().nullable() })
  .meta({ id: 'DeliveryPage' })
export type DeliveryPage = z.infer<typeof DeliveryPage>

export const ListDeliveries = z.strictObject({
  status: Delivery.shape.status.optional(),
  limit: PageLimit,
  page_id: z.string().optional().describe('`next_page_id` of the previous page.'),
})
export type ListDeliveries = z.infer<typeof ListDeliveries>

export const ListAllCallbacks = z.strictObject({
  failing: Flag.optional().describe(
    '`true`: only those whose last attempt failed, that were disabled by the server, or that have skipped a delivery.',
  ),
  limit: PageLimit.describe('A page ends with the conversation that reaches it, and can be short.'),
  page_id: z.string().optional().describe('`next_page_id` of the page before.'),
})
export type ListAllCallbacks = z.infer<typeof ListAllCallbacks>

/** A callback in the list of all conversations. */
export const CallbackState = z
  .object({
    conversation_id: z.uuid(),
    title: z.string().optional().describe('Of the conversation.'),
    user_id: z.string().optional().describe('Of the conversation.'),
    callback: Callback,
    pending: Delivery.optional().describe('The delivery that failed and is tried again.'),
    failed: z.array(Delivery).describe('The last deliveries that were skipped, newest first; at most 5.'),
  })
  .meta({ id: 'CallbackState' })
export type CallbackState = z.infer<typeof CallbackState>

export const CallbackStates = z
  .object({ items: z.array(CallbackState), next_page_id: z.string().nullable() })
  .meta({ id: 'CallbackStates' })
export type CallbackStates = z.infer<typeof CallbackStates>

export const Redeliver = z
  .strictObject({
    from_seq: z.int().positive().describe('Seq of the first event to deliver again.'),
  })
  .meta({ id: 'Redeliver', examples: [{ from_seq: 1 }] })

export const TestOutcome = z
  .object({
    event_id: z.uuid().describe('`webhook-id` of the delivery.'),
    status: z.enum(['delivered', 'failed']),
    response_status: z.int().optional().describe('Absent without a response.'),
    error: z.string().optional(),
    duration_ms: z.number().nonnegative(),
  })
  .meta({ id: 'TestOutcome' })
export type TestOutcome = z.infer<typeof TestOutcome>

/** The event of a test, which is not in the log, and so has no `seq`. */
export const CallbackTest = z
  .object({
    id: z.uuid(),
    timestamp: z.iso.datetime(),
    conversation_id: z.uuid(),
    source: z.literal('environment'),
    type: z.literal('CallbackTest'),
    version: z.int().positive(),
  })
  .meta({ id: 'CallbackTest' })
export type CallbackTest = z.infer<typeof CallbackTest>

/** The event as in the log, or a `CallbackTest` for a test delivery. */
const DeliveredEvent = z.discriminatedUnion('type', [...Event.options, CallbackTest]).meta({ id: 'DeliveredEvent' })

/** The body of a delivery. */
export const WebhookBody = z
  .object({
    conversation_id: z.uuid(),
    event: DeliveredEvent,
  })
  .meta({ id: 'WebhookBody' })

export const WebhookHeaders = z.object({
  'webhook-id': z.uuid().describe('Id of the event, the same on every attempt. Use it to detect duplicates.'),
  'webhook-timestamp': z.string().describe('Time of this attempt, Unix time in seconds.'),
  'webhook-signature': z
    .string()
    .describe(
      '`v1,` followed by the base64 of HMAC-SHA256 of `id.timestamp.body`, keyed with the decoded secret. After a rotation of the secret: one for each secret, separated by a space.',
    ),
})

/** Returns the configured headers with masked values. */
export const maskHeaders = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, MASK]))
