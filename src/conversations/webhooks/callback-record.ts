/** What `callbacks.json` holds of a conversation's callbacks, and how one of them is told. */
import { z } from 'zod'
import type { Callback } from '../../contract/callback.ts'
import { Delivery, maskHeaders } from '../../contract/callback.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { Failing } from './backoff.ts'

export const FILE_FORMAT = 1

export const CallbackRecord = z.object({
  id: z.uuid(),
  url: z.string(),
  events: z.array(z.string()).optional(),
  /** The `Credentials`, as JSON, encrypted, in base64. */
  sealed: z.string(),
  enabled: z.boolean(),
  disabled_reason: z.string().optional(),
  /** All up to this seq was delivered, passed over, or is not for it. */
  cursor: z.int().nonnegative(),
  failing: Failing.optional(),
  /** Deliveries that were passed over, oldest first. */
  failed: z.array(Delivery),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  /** Of the request that made it. */
  idempotency: z.object({ key: z.string(), bodyHash: z.string() }).optional(),
})
export type CallbackRecord = z.infer<typeof CallbackRecord>

const CreationKey = z.object({ key: z.string(), bodyHash: z.string(), id: z.uuid(), at: z.iso.datetime() })

export const CallbackFile = z.object({
  format: z.literal(FILE_FORMAT),
  callbacks: z.array(CallbackRecord),
  /** Keys that made callbacks which are deleted: a late request must not make them again. */
  goneKeys: z.array(CreationKey),
})
export type CallbackFile = z.infer<typeof CallbackFile>

export const NO_CALLBACKS: CallbackFile = { format: FILE_FORMAT, callbacks: [], goneKeys: [] }

/** What of a callback is kept encrypted. */
export const Credentials = z.object({ secret: z.string(), headers: z.record(z.string(), z.string()) })
export type Credentials = z.infer<typeof Credentials>

/** While no key of the server opens its credentials. */
const SEALED_WITH_ANOTHER_KEY =
  'its secret and headers were encrypted with another key; start the server with that key, or make the callback again'

export function viewOf(
  record: CallbackRecord,
  credentials: Credentials | undefined,
  nextAttemptAt: string | undefined,
): Callback {
  // Not in the record: with the right key it is enabled again.
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
    failing_since: record.failing?.since,
    next_attempt_at: nextAttemptAt,
    created_at: record.created_at,
    updated_at: record.updated_at,
  })
}
