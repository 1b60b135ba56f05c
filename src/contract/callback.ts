/** Callbacks on the wire: where the events of a conversation are delivered, what is delivered, and what came of it. */
import { z } from 'zod'
import { PageLimit } from './conversation.ts'
import { EVENT_TYPES, Event } from './event.ts'
import { faultOfHeaderName } from './http-header.ts'
import { MASK } from './llm-config.ts'

/** Of one conversation. */
export const MAX_CALLBACKS = 20
const MAX_URL_LENGTH = 2048
const MAX_HEADERS = 20
const MAX_HEADER_LENGTH = 4096

/** What the server says itself, or what belongs to the connection and not to the message. */
const RESERVED_HEADER =
  /^(webhook-.*|content-.*|proxy-.*|host|user-agent|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|http2-settings)$/i

export const CallbackUrl = z
  .url({ protocol: /^https?$/, error: 'is an absolute http or https URL' })
  .max(MAX_URL_LENGTH)
  .refine((url) => !hasCredentials(url), { error: 'holds credentials; send them in headers' })
  .describe('http or https, without credentials: those belong in `headers`. Shown as it is.')

const EventTypes = z.array(z.enum(EVENT_TYPES)).min(1).describe('Deliver events of these types only. Absent: all.')

/** Faults are told by their place: a value may stand where a name belongs. */
const CallbackHeaders = z
  .record(z.string(), z.string())
  .check(({ value, issues }) => {
    const entries = Object.entries(value)
    const refuse = (message: string) => issues.push({ code: 'custom', input: undefined, path: [], message })
    entries.forEach(([name, text], at) => {
      const fault = faultOfHeader(name, text)
      if (fault !== undefined) refuse(`entry ${at + 1}: ${fault}`)
    })
    if (new Set(entries.map(([name]) => name.toLowerCase())).size < entries.length) refuse('a name is there twice')
    if (entries.length > MAX_HEADERS) refuse(`there can be ${MAX_HEADERS} at most`)
  })
  .describe('Sent with each delivery. Kept encrypted; told back masked.')

export const CreateCallback = z
  .strictObject({ url: CallbackUrl, events: EventTypes.optional(), headers: CallbackHeaders.optional() })
  .meta({ id: 'CreateCallback' })
export type CreateCallback = z.infer<typeof CreateCallback>

/** What is absent stays. */
export const UpdateCallback = z
  .strictObject({
    url: CallbackUrl.optional().describe(
      'Where it has another origin (scheme, host and port), the stored headers are deleted unless they are sent again, and the callback gets a new secret, which the answer tells.',
    ),
    events: EventTypes.nullable().optional().describe('`null`: all.'),
    headers: CallbackHeaders.optional().describe(
      'Replaces all of them; a masked value sent back keeps the one there is.',
    ),
    enabled: z
      .boolean()
      .optional()
      .describe('`true` also tries at once what waits for its next attempt, and goes on where a disabled one stopped.'),
  })
  .meta({ id: 'UpdateCallback' })
export type UpdateCallback = z.infer<typeof UpdateCallback>

export const Callback = z
  .object({
    id: z.uuid(),
    url: z.string(),
    events: z.array(z.string()).optional().describe('Absent: all.'),
    headers: z.record(z.string(), z.string()).optional().describe('Values masked.'),
    enabled: z.boolean(),
    disabled_reason: z.string().optional().describe('Why the server disabled it.'),
    cursor: z.int().nonnegative().describe('Seq up to which events were delivered, or are not for this callback.'),
    failing_since: z.iso.datetime().optional().describe('Since then every attempt has failed.'),
    next_attempt_at: z.iso.datetime().optional(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Callback' })
export type Callback = z.infer<typeof Callback>

export const CreatedCallback = Callback.extend({
  secret: z.string().describe('What deliveries are signed with (`whsec_…`). It is told now and never again.'),
}).meta({ id: 'CreatedCallback' })
export type CreatedCallback = z.infer<typeof CreatedCallback>

export const UpdatedCallback = Callback.extend({
  secret: z
    .string()
    .optional()
    .describe(
      'After a change to another origin: what deliveries are signed with from now on. It is told now and never again.',
    ),
  dropped: z
    .array(z.literal('headers'))
    .optional()
    .describe('After a change to another origin: stored headers were deleted and not sent there.'),
}).meta({ id: 'UpdatedCallback' })
export type UpdatedCallback = z.infer<typeof UpdatedCallback>

/** A list like any other; there is only one page of it. */
export const CallbackPage = z
  .object({ items: z.array(Callback).describe('In the order they were made.'), next_page_id: z.null() })
  .meta({ id: 'CallbackPage' })

export const Delivery = z
  .object({
    id: z.uuid(),
    event_id: z.uuid().describe('The `webhook-id` of every attempt.'),
    seq: z.int().positive(),
    type: z.string(),
    status: z
      .enum(['pending', 'delivered', 'failed'])
      .describe('`failed`: the receiver refused this event each time, and it was passed over.'),
    attempts: z.int().positive(),
    response_status: z.int().optional().describe('Of the last attempt; absent when no answer came.'),
    error: z.string().optional().describe('Why the last attempt failed.'),
    duration_ms: z.number().nonnegative().describe('Of the last attempt.'),
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
  page_id: z.string().optional().describe('`next_page_id` of the page before.'),
})
export type ListDeliveries = z.infer<typeof ListDeliveries>

export const Redeliver = z
  .strictObject({
    from_seq: z.int().positive().describe('Events from this one on are delivered, again where they were.'),
  })
  .meta({ id: 'Redeliver' })

export const TestOutcome = z
  .object({
    event_id: z.uuid().describe('The `webhook-id` that was sent.'),
    status: z.enum(['delivered', 'failed']),
    response_status: z.int().optional().describe('Absent when no answer came.'),
    error: z.string().optional(),
    duration_ms: z.number().nonnegative(),
  })
  .meta({ id: 'TestOutcome' })
export type TestOutcome = z.infer<typeof TestOutcome>

/** In no log, and so without a `seq`. */
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

/** The body of a delivery. */
export const WebhookBody = z
  .object({
    conversation_id: z.uuid(),
    event: z.union([Event, CallbackTest]).describe('As in the log; a `CallbackTest` where one was asked for.'),
  })
  .meta({ id: 'WebhookBody' })

export const WebhookHeaders = z.object({
  'webhook-id': z.uuid().describe('Id of the event, the same on each attempt: what comes twice is told by it.'),
  'webhook-timestamp': z.string().describe('Of this attempt, Unix time in seconds.'),
  'webhook-signature': z
    .string()
    .describe('`v1,` and the base64 of HMAC-SHA256 of `id.timestamp.body` under the decoded secret.'),
})

/** The configured headers as they may be shown. */
export const maskHeaders = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, MASK]))

function hasCredentials(url: string): boolean {
  const parsed = URL.parse(url)
  return parsed !== null && (parsed.username !== '' || parsed.password !== '')
}

function faultOfHeader(name: string, value: string): string | undefined {
  if (RESERVED_HEADER.test(name)) return `the server sets ${name.toLowerCase()} itself, or the connection does`
  const fault = faultOfHeaderName(name)
  if (fault !== undefined) return fault
  if (value.length > MAX_HEADER_LENGTH) return `a value has at most ${MAX_HEADER_LENGTH} characters`
  if (!/^[\t\x20-\x7e]*$/.test(value)) return 'a value holds visible ASCII characters and spaces'
  return undefined
}
