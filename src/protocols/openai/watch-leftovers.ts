/** Looks for what was to go with its answer, when the server has started and then every hour. Loaded with the server: it costs others nothing. */
import type { FastifyInstance } from 'fastify'
import type { ConversationManager } from '../../conversations/manager.ts'
import { mayBeTemporary } from './temporary-id.ts'

const INTERVAL_MS = 60 * 60 * 1000

/** `loaded` resolves when the conversations are known. It ends with the server. */
export function watchLeftovers(app: FastifyInstance, manager: ConversationManager, loaded: Promise<void>): void {
  const { log, hashBody } = app
  const onFailure = (err: unknown, id?: string) =>
    log.warn({ err, conversation_id: id }, 'a conversation that was to go with its answer could not be removed')
  const remove = async () => {
    if (manager.count({}, ({ id }) => mayBeTemporary(id)) === 0) return
    const { removeLeftovers } = await import('./leftovers.ts')
    await removeLeftovers(manager, { hashBody, onFailure })
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
