/** The contents of `callbacks.json`, and the view of one callback. */
import { z } from 'zod'
import { currentTypes } from '../events/earlier-events.ts'
import type { Callback } from '../contract/callback.ts'
import { Delivery, maskHeaders } from '../contract/callback.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import { Failing } from './after-failure.ts'

export const FILE_FORMAT = 1

/** What the bodies of the deliveries of a protocol are made of. */
export const DeliveryForm = z.object({
  protocol: z.string(),
  /** The name that the client has for the callback. */
  id: z.string(),
  /** Seq of the first event of the turn that it is about. */
  start: z.int().positive(),
  /** The name that the client has for the conversation. */
  context: z.string(),
})
export type DeliveryForm = z.infer<typeof DeliveryForm>

export const CallbackRecord = z.object({
  id: z.uuid(),
  url: z.string(),
  events: z.array(z.string()).transform(currentTypes).optional(),
  /** The `Credentials`, as JSON, encrypted, in base64. */
  sealed: z.string(),
  enabled: z.boolean(),
  disabled_reason: z.string().optional(),
  /** All events up to this seq were delivered, skipped, or do not match the filter. */
  cursor: z.int().nonnegative(),
  failing: Failing.optional(),
  /** Skipped deliveries, oldest first. */
  failed: z.array(Delivery),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  /** Absent: deliveries are events. */
  form: DeliveryForm.optional(),
  /** The idempotency key of the request that created it. */
  idempotency: z.object({ key: z.string(), bodyHash: z.string() }).optional(),
})
export type CallbackRecord = z.infer<typeof CallbackRecord>

const CreationKey = z.object({ key: z.string(), bodyHash: z.string(), id: z.uuid(), at: z.iso.datetime() })

export const CallbackFile = z.object({
  format: z.literal(FILE_FORMAT),
  callbacks: z.array(CallbackRecord),
  /** Keys of deleted callbacks: a late retry must not create them again. */
  goneKeys: z.array(CreationKey),
})
export type CallbackFile = z.infer<typeof CallbackFile>

export const NO_CALLBACKS: CallbackFile = { format: FILE_FORMAT, callbacks: [], goneKeys: [] }

/** The encrypted part of a callback. */
export const Credentials = z.object({
  secret: z.string(),
  headers: z.record(z.string(), z.string()),
  /** The secret before, after a rotation. */
  previous: z.object({ secret: z.string(), until: z.iso.datetime() }).optional(),
})
export type Credentials = z.infer<typeof Credentials>

/** Shown while no key of the server decrypts its credentials. */
const SEALED_WITH_ANOTHER_KEY =
  'its secret and headers were encrypted with another key; start the server with that key, or create the callback again'

export function viewOf(
  record: CallbackRecord,
  credentials: Credentials | undefined,
  nextAttemptAt: string | undefined,
): Callback {
  // This is not stored in the record: with the right key the callback is enabled again.
  const isLocked = record.enabled && !credentials
  const names = Object.keys(credentials?.headers ?? {})
  return withoutUndefined({
    id: record.id,
    url: record.url,
    events: record.events,
    headers: names.length ? maskHeaders(names) : undefined,
    enabled: record.enabled && !isLocked,
    disabled_reason: isLocked ? SEALED_WITH_ANOTHER_KEY : record.disabled_reason,
    cursor: record.cursor,
    previous_secret_until: isCurrent(credentials?.previous) ? credentials?.previous?.until : undefined,
    failing_since: record.failing?.since,
    next_attempt_at: nextAttemptAt,
    created_at: record.created_at,
    updated_at: record.updated_at,
  })
}

const isCurrent = (previous: Credentials['previous']): boolean =>
  previous !== undefined && Date.parse(previous.until) > Date.now()

/** The secrets that sign a delivery now. */
export const signingSecrets = ({ secret, previous }: Credentials): readonly string[] =>
  previous && isCurrent(previous) ? [secret, previous.secret] : [secret]
