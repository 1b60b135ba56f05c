/** Applies the intents of subagents in the turn of their conversation, which the stop of a run may hold. */
import type { Intent } from '../../state/intents.ts'
import type { IntentInbox } from '../live/inbox.ts'

/** Rejects with the signal's reason if it is aborted before the turn begins; then nothing is stored. */
export async function applyEnqueued(actor: IntentInbox, intent: Intent, signal: AbortSignal): Promise<void> {
  const { promise: abortion, reject } = Promise.withResolvers<never>()
  let hasBegun = false
  const onAbort = () => (hasBegun ? undefined : reject(signal.reason))
  signal.addEventListener('abort', onAbort, { once: true })
  const applying = actor.enqueue(async () => {
    if (signal.aborted) return
    hasBegun = true
    await actor.apply(intent)
  })
  applying.catch(() => {}) // reported to the caller below, unless the signal is aborted first
  try {
    // The stop of a run may hold the turn, and wait for this.
    signal.throwIfAborted()
    await Promise.race([applying, abortion])
  } finally {
    signal.removeEventListener('abort', onAbort)
    abortion.catch(() => {})
  }
}
