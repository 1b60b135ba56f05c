/** What a start of the server does about deliveries: opens the conversations that are marked, and no other. */
import { Problem } from '../../contract/problem.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { Storage } from '../../storage/storage.ts'

/** Few: it is done beside what clients ask for. */
const CONCURRENCY = 4

export type ResumeDeps = {
  readonly storage: Pick<Storage, 'due'>
  /** What is open delivers by itself; `settle` takes back a mark that was left for nothing. */
  readonly open: (id: string) => Promise<{ readonly deliveries: { readonly settle: () => Promise<void> } }>
  readonly logger: Logger
}

/** Resolves when each has been opened. Throws nothing but what the disk says of the marks. */
export async function resumeDeliveries({ storage, open, logger }: ResumeDeps): Promise<void> {
  await mapBounded(await storage.due.ids(), CONCURRENCY, async (id) => {
    try {
      const { deliveries } = await open(id)
      await deliveries.settle()
    } catch (error) {
      const code = error instanceof Problem ? error.code : undefined
      if (code === 'unavailable') return // the server stops; the mark is for the next start
      if (code === 'conversation_not_found' || code === 'conversation_deleted') return await storage.due.clear(id)
      logger.error({ err: error, conversation_id: id }, 'the callbacks of this conversation could not be resumed')
    }
  })
}
