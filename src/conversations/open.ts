/** Opens a conversation from its stored log. */
import { Problem } from '../contract/problem.ts'
import type { StoredLog } from '../events/event-store.ts'
import type { ConversationStorage } from '../storage/storage.ts'
import type { Logger } from '../telemetry/logger.ts'
import { buildConversation } from './build.ts'
import type { ConversationSecretsDeps } from './config/secrets.ts'
import { ConversationSecrets } from './config/secrets.ts'
import type { Conversation } from './conversation.ts'
import type { ConversationDeps } from './dependencies.ts'
import { readSnapshot } from '../state/snapshot.ts'
import { foldLog } from './registry/read-state.ts'
import type { State } from '../state/state.ts'
import { readCallbacks } from '../webhooks/callback-set.ts'

export type OpenOptions = {
  /** Called when nothing else writes the conversation, before it is read. */
  readonly onTaken: (id: string) => Promise<void>
  readonly onChange: (state: State) => void
  /** Called if its last writer left no work that has begun. */
  readonly onReleased: (id: string) => void
}

/** Throws a `Problem` if it does not exist or its log is damaged. */
export async function openConversation(
  deps: ConversationDeps,
  id: string,
  { onChange, onTaken, onReleased }: OpenOptions,
): Promise<Conversation> {
  const { log: storedLog, repaired, isReleased } = await deps.storage.conversation(id).openLog()
  if (isReleased) onReleased(id)
  await onTaken(id)
  if (repaired) deps.logger.warn({ conversation_id: id }, repaired)
  return await openStored(deps, { stored: storedLog, cachedState: await readSnapshot(deps.storage, id), onChange })
}

export type StoredConversation = {
  /** Closed if the conversation cannot be opened. */
  readonly stored: StoredLog
  /** The cached state from the snapshot, if any. */
  readonly cachedState?: State | undefined
  readonly onChange: (state: State) => void
}

export async function openStored(
  deps: ConversationDeps,
  { stored, cachedState, onChange }: StoredConversation,
): Promise<Conversation> {
  const id = stored.conversationId
  const own = deps.storage.conversation(id)
  try {
    const state = await foldLog(stored, cachedState)
    if (!state.createdAt) throw new Problem('conversation_damaged', `The log of conversation ${id} is empty.`)
    const redactor = deps.createRedactor(id)
    const secrets = new ConversationSecrets({
      redactor,
      ...(await readSecrets(own, deps.logger)),
      write: (values) => own.writeSecrets(values),
      id,
      logger: deps.logger,
    })
    const callbacks = await readCallbacks(own.callbacks, deps.logger)
    return buildConversation(deps, { stored, state, secrets, callbacks, redactor, onChange })
  } catch (error) {
    await stored.close()
    throw error
  }
}

/**
 * Leaves out what cannot be decrypted, and reports it when it is needed: the rest of the conversation can still be
 * read.
 */
async function readSecrets(own: ConversationStorage, logger: Logger): Promise<OpenedSecrets> {
  try {
    return { keptValues: await own.readSecrets() }
  } catch (lockedProblem) {
    if (!(lockedProblem instanceof Problem)) throw lockedProblem
    logger.warn({ conversation_id: own.id }, lockedProblem.message)
    return { keptValues: {}, locked: lockedProblem }
  }
}

type OpenedSecrets = Pick<ConversationSecretsDeps, 'keptValues' | 'locked'>
