/** Resumes webhook deliveries at startup: opens the conversations with a dirty flag, and no others. */
import { Problem } from '../contract/problem.ts'
import { mapBounded } from '../lib/map-bounded.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Storage } from '../storage/storage.ts'

/** Low, because it runs while clients are served. */
const CONCURRENCY = 4

export type ResumeDeps = {
  readonly storage: Pick<Storage, 'due'>
  /** An open conversation delivers by itself; `settle` clears a flag that is not needed. */
  readonly open: (id: string) => Promise<{ readonly deliveries: { readonly settle: () => Promise<void> } }>
  readonly logger: Logger
}

/** Resolves when each has been opened. Throws only the disk's errors about the flags. */
export async function resumeDeliveries({ storage, open, logger }: ResumeDeps): Promise<void> {
  await mapBounded(await storage.due.ids(), CONCURRENCY, async (id) => {
    try {
      const { deliveries } = await open(id)
      await deliveries.settle()
    } catch (error) {
      const code = error instanceof Problem ? error.code : undefined
      if (code === 'unavailable') return // the server stops; the flag is kept for the next start
      if (code === 'conversation_not_found' || code === 'conversation_deleted') return await storage.due.clear(id)
      logger.error({ err: error, conversation_id: id }, 'the callbacks of this conversation could not be resumed')
    }
  })
}
