/** What a callback delivers and what has failed, of open conversations and of those at rest. */
import type { Callback, CallbackState, Delivery } from '../contract/callback.ts'
import { withoutUndefined } from '../lib/without-undefined.ts'
import type { ConversationStorage } from '../storage/storage.ts'
import { CallbackFile, Credentials, viewOf } from './callback-record.ts'
import type { Entry } from './callback-set.ts'
import { createDeliveryHistory } from './delivery-history.ts'

export type DeliveryState = Pick<CallbackState, 'callback' | 'pending' | 'failed'>

/** Skipped deliveries that are shown. */
const MAX_SHOWN = 5

type ShownEntry = Pick<Entry, 'record' | 'credentials' | 'history'>

export function callbackView({ record, credentials, history }: ShownEntry): Callback {
  return viewOf(record, credentials, record.enabled && credentials ? history.nextAttemptAt() : undefined)
}

export function stateOfEntry(entry: ShownEntry): DeliveryState {
  const last = (status: Delivery['status'], limit: number) => entry.history.page({ status, limit }).items
  const [pending] = last('pending', 1)
  return withoutUndefined({ callback: callbackView(entry), pending, failed: last('failed', MAX_SHOWN) })
}

/** Returns those of a conversation that is not open; none if what is stored cannot be read: opening it reports that. */
export async function statesAtRest({ callbacks, sealer }: ConversationStorage): Promise<DeliveryState[]> {
  const parseResult = CallbackFile.safeParse(await callbacks.read())
  if (!parseResult.success) return []
  return parseResult.data.callbacks.map((record) => {
    const openedBytes = sealer.unseal(Buffer.from(record.sealed, 'base64'))
    const credentials = openedBytes && Credentials.parse(JSON.parse(openedBytes.toString()))
    return stateOfEntry({ record, credentials, history: createDeliveryHistory(record.failed) })
  })
}

/** Returns true if a person should look at it. */
export const isFailing = ({ callback, failed }: DeliveryState): boolean =>
  callback.failing_since !== undefined || callback.disabled_reason !== undefined || failed.length > 0
