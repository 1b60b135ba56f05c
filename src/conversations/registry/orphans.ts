/** Takes over conversations whose instance has died while this one runs: in batches, until none is left. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Storage } from '../../storage/storage.ts'
import type { Logger } from '../../telemetry/logger.ts'

export type OrphanDeps = {
  readonly storage: Pick<Storage, 'instances' | 'availability'>
  /** Aborted when this instance takes nothing over any more. */
  readonly leaving?: AbortSignal | undefined
  /** Rejects if it cannot be opened, or another instance was faster. */
  readonly takeOver: (id: string) => Promise<unknown>
  readonly logger: Logger
  readonly signal: AbortSignal
}

const INTERVAL_MS = 1000
const BATCH = 16

/** Resolves when a signal is aborted, and at once where nobody shares the storage. Never rejects. */
export async function watchOrphans({
  storage,
  takeOver,
  logger,
  leaving,
  signal: stopping,
}: OrphanDeps): Promise<void> {
  const { instances, availability } = storage
  if (!instances || !availability.lease) return
  const signal = AbortSignal.any([stopping, leaving ?? stopping])
  const reportedIds = new Set<string>()
  const tryOne = async (id: string): Promise<string[]> => {
    try {
      await takeOver(id)
      logger.info({ conversation_id: id }, 'this conversation was taken over from an instance that has ended')
      return []
    } catch (error) {
      if (!signal.aborted && !reportedIds.has(id))
        logger.warn({ err: error, conversation_id: id }, 'a conversation was not taken over; it is tried again')
      reportedIds.add(id)
      return [id]
    }
  }
  while (!signal.aborted) {
    await sleep(INTERVAL_MS, undefined, { signal, ref: false }).catch(() => {})
    // Another instance took these over, or they cannot be opened now. The next round tries again.
    const failedIds: string[] = []
    for (let isMore = true; isMore && !signal.aborted;) {
      // The storage reports its own failures.
      const ids = await instances.orphans(BATCH, failedIds).catch((): string[] => [])
      failedIds.push(...(await Promise.all(ids.map(tryOne))).flat())
      isMore = ids.length === BATCH
    }
  }
}
