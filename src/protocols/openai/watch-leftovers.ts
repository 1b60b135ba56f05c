/** Looks for what was to go with its answer, when the server has started and then every hour. Loaded with the server: it costs others nothing. */
import type { FastifyInstance } from 'fastify'
import type { ConversationManager } from '../../conversations/manager.ts'
import type { LeftoverAges } from './leftover-ages.ts'
import { mayBeTemporary } from './temporary-id.ts'

const INTERVAL_MS = 60 * 60 * 1000

export type LeftoverDeps = {
  readonly manager: ConversationManager
  /** Resolves when the conversations are known. */
  readonly loaded: Promise<void>
  /** Other instances use the same conversations. */
  readonly hasPeers: boolean
}

/** Ends with the server. */
export function watchLeftovers(app: FastifyInstance, { manager, loaded, hasPeers }: LeftoverDeps): void {
  const { log, hashBody } = app
  const onFailure = (err: unknown, id?: string) =>
    log.warn({ err, conversation_id: id }, 'a conversation that was to go with its answer could not be removed')
  let ages: LeftoverAges | undefined
  let trustsClock = !hasPeers
  const remove = async () => {
    const isFirst = trustsClock
    trustsClock = false
    if (manager.count({}, ({ id }) => mayBeTemporary(id)).count === 0) return
    const [{ LeftoverAges: Ages }, { removeLeftovers }] = await Promise.all([
      import('./leftover-ages.ts'),
      import('./leftovers.ts'),
    ])
    ages ??= new Ages({ trustsClock: isFirst })
    await removeLeftovers(manager, { hashBody, ages, onFailure })
  }
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  app.addHook('onClose', async () => {
    isClosed = true
    clearInterval(timer)
  })
  const watch = async () => {
    await loaded
    if (isClosed) return
    timer = setInterval(() => void remove().catch(onFailure), INTERVAL_MS).unref()
    await remove()
  }
  void watch().catch(onFailure)
}
