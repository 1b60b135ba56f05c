/** ConversationManager: creates, forks, finds, lists, deletes and closes conversations. What happens inside one is for `Conversation`. */
import type {
  ConversationView,
  CountConversations,
  CreateConversation,
  ForkConversation,
  ListConversations,
} from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import { settlesWithin } from '../../lib/bounded-wait.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import type { Conversation } from '../conversation.ts'
import type { Created } from '../create.ts'
import { createConversation } from '../create.ts'
import { forkConversation } from '../fork.ts'
import { resumeDeliveries } from '../webhooks/resume-deliveries.ts'
import { viewOf } from '../state/view.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { CreatedKeys } from '../idempotency/created-keys.ts'
import { answerOnce } from '../idempotency/idempotency.ts'
import { createInFlight } from '../idempotency/in-flight.ts'
import { keyOf } from './known-conversations.ts'
import type { Summary } from '../../storage/storage.ts'
import type { IsVisible } from './listing.ts'
import type { OpenConversationsDeps } from './open-conversations.ts'
import { OpenConversations, deletedProblem } from './open-conversations.ts'
import { removeData, stateOnDisk } from './removal.ts'
import { damaged } from './resting-views.ts'
import { readSnapshot } from './snapshot.ts'
import type { StartUpDeps } from './start-up.ts'

/** Conversations viewed at the same time. */
const VIEW_CONCURRENCY = 64

/**
 * How long a delete waits for the end of what runs in the conversation, and for the removal of its data, milliseconds. It
 * then returns and continues in the background: a process or a file system that hangs keeps no client waiting.
 */
const DELETE_TIMEOUT_MS = 4500

/** How long a stop of the server waits for its conversations, milliseconds. What they leave running is ended after that. */
const CLOSE_TIMEOUT_MS = 6000

export type ManagerDeps = Omit<OpenConversationsDeps, 'isBusy'> &
  Pick<StartUpDeps, 'endOrphans'> & {
    /** Called when a conversation is gone for good. */
    readonly onDeleted: (conversation: Pick<Summary, 'id' | 'userId'>) => void
    /** Ends the processes that any conversation has left; returns the pids of those that could not be ended. */
    readonly endProcesses: () => Promise<readonly number[]>
  }

export class ConversationManager {
  readonly #deps: ManagerDeps
  readonly #open: OpenConversations
  readonly #created = new CreatedKeys()
  readonly #inFlight = createInFlight()
  /** Ids that are being made or deleted: nothing else may begin with them. */
  readonly #busy = new Set<string>()
  #starting: Promise<void> | undefined

  constructor(deps: ManagerDeps) {
    this.#deps = deps
    this.#open = new OpenConversations({ ...deps, isBusy: (id) => this.#busy.has(id) })
  }

  /**
   * Reads which conversations there are, and recovers those that a stop of the server left half done. Must come before
   * anything else. Throws when the manager is closed meanwhile.
   */
  start(): Promise<void> {
    this.#starting = this.#start()
    return this.#starting
  }

  async #start(): Promise<void> {
    const { signal } = this.#open
    const keys = await this.#deps.known.load(signal)
    this.#created.remember(keys)
    signal.throwIfAborted()
    await this.#open.recoverActive()
  }

  /** Opens those that have something to deliver to callbacks; open conversations deliver by themselves. */
  async resumeDeliveries(): Promise<void> {
    const { storage, logger } = this.#deps.conversations
    await resumeDeliveries({ storage, logger, open: (id) => this.open(id) })
  }

  /** Throws a `Problem` when it does not exist, was deleted, or its log is damaged. */
  async open(id: string): Promise<Conversation> {
    return await this.#open.open(id)
  }

  /** Keeps a conversation from being closed as idle until the returned function is called. Nothing is opened. */
  hold(id: string): () => void {
    return this.#open.hold(id)
  }

  /** The same key and body again, within a day, is the same conversation: it is returned, and not created a second time. */
  async create(request: CreateConversation, idempotency?: Idempotency): Promise<ConversationView> {
    const { conversations, known } = this.#deps
    return await this.#once(idempotency, () =>
      this.#make(request.id, (id) =>
        createConversation(conversations, { id, request, idempotency, onChange: known.update }),
      ),
    )
  }

  /** A new conversation from what another one is by now. With a key as a create. */
  async fork(sourceId: string, request: ForkConversation, idempotency?: Idempotency): Promise<ConversationView> {
    const { conversations, known } = this.#deps
    const { signal } = this.#open
    return await this.#once(idempotency, async () => {
      const source = await this.open(sourceId)
      return await this.#make(request.id, (id) =>
        forkConversation(conversations, source, { id, request, idempotency, signal, onChange: known.update }),
      )
    })
  }

  /** One page, newest first unless asked otherwise. Opens no log. */
  async list(
    query: ListConversations,
    isVisible?: IsVisible,
  ): Promise<{ items: ConversationView[]; next_page_id: string | null }> {
    const { ids, nextPageId } = this.#deps.known.page(query, isVisible)
    const views = await mapBounded(ids, VIEW_CONCURRENCY, (id) => this.#viewWithoutOpening(id))
    return { items: views.filter((view) => view !== undefined), next_page_id: nextPageId }
  }

  count(filter: CountConversations, isVisible?: IsVisible): number {
    return this.#deps.known.count(filter, isVisible)
  }

  /** What decides who may see it; undefined when it does not exist. */
  ownerOf(id: string): Pick<Summary, 'id' | 'userId'> | undefined {
    return this.#deps.known.get(id)
  }

  /** For what is said about a conversation outside of it. Returns text as it is when the conversation is not open: then none of its secrets are known. */
  async redactFor(id: string): Promise<(text: string) => string> {
    const conversation = await this.#open.ifOpen(id)
    return conversation?.redact ?? ((text) => text)
  }

  /**
   * From here on nobody finds it. Its processes are dead and its data gone when this resolves, unless that takes longer
   * than `DELETE_TIMEOUT_MS`: then it is done later. The workdir goes only if the server made it.
   */
  async delete(id: string): Promise<void> {
    const { known, conversations } = this.#deps
    const { logger, storage } = conversations
    this.#open.refuseWhenClosing()
    if (!known.has(id)) throw await this.#open.missingProblem(id)
    // Known and busy: another request is deleting it already.
    if (this.#busy.has(id)) throw deletedProblem(id)
    this.#busy.add(id)
    try {
      // When this fails the conversation is as it was; from here on it is gone, whatever fails.
      // oxlint-disable-next-line typescript/no-non-null-assertion -- known, as checked above
      const keys = keyOf(known.get(id)!)
      await storage.deletions.mark(id, keys[0])
      this.#created.remember(keys)
      known.delete(id)
    } catch (error) {
      this.#busy.delete(id)
      throw error
    }
    const removed = this.#open.endDuring(id, this.#removeMarked(id)).finally(() => this.#busy.delete(id))
    if (await settlesWithin(DELETE_TIMEOUT_MS, removed)) return
    logger.warn({ conversation_id: id }, 'deleting a conversation takes long; it goes on in the background')
    removed.catch((error: unknown) => logger.error({ err: error, conversation_id: id }, 'a delete failed'))
  }

  /**
   * Ends every run, stream and process within a bound; must be called last. Returns whether all of it has ended.
   */
  async close(): Promise<boolean> {
    const { conversations, endProcesses } = this.#deps
    const { logger, storage } = conversations
    this.#open.stop()
    await this.#starting?.catch(() => {}) // reported to the caller that started it
    const isInTime = await settlesWithin(CLOSE_TIMEOUT_MS, this.#open.closeAll())
    if (!isInTime) logger.warn('some conversations did not close in time')
    await storage.settled()
    const left = await endProcesses()
    if (left.length > 0) logger.error({ pids: left }, 'processes of conversations could not be ended')
    return isInTime && left.length === 0
  }

  async #once(idempotency: Idempotency | undefined, make: () => Promise<ConversationView>): Promise<ConversationView> {
    this.#open.refuseWhenClosing()
    if (!idempotency) return await make()
    return await answerOnce(idempotency, {
      remembered: this.#created.of(idempotency.key),
      make: () => this.#inFlight(idempotency.key, make),
      again: ({ id }) => this.#earlierAnswer(id),
    })
  }

  async #earlierAnswer(id: string): Promise<ConversationView> {
    const conversation = await this.open(id)
    const warnings = conversation.state.settings.idempotency?.warnings
    return { ...conversation.view(), ...(warnings && { warnings }) }
  }

  async #make(wantedId: string | undefined, make: (id: string) => Promise<Created>): Promise<ConversationView> {
    const { known, conversations } = this.#deps
    const id = wantedId ?? uuid7()
    if (known.has(id) || this.#busy.has(id))
      throw new Problem('conversation_exists', `There is a conversation ${id} already.`)
    this.#busy.add(id)
    try {
      if (wantedId !== undefined && (await conversations.storage.deletions.has(id))) throw deletedProblem(id)
      // A stop that began meanwhile closes what was added by then, and nothing that comes later.
      this.#open.refuseWhenClosing()
      const made = make(id)
      const opening = made.then(({ conversation }) => conversation)
      this.#open.add(id, opening)
      const conversation = await opening
      const { warnings } = await made
      this.#open.complete(conversation)
      // oxlint-disable-next-line typescript/no-non-null-assertion -- known since the line above
      // oxlint-disable-next-line typescript/no-non-null-assertion -- known, as checked above
      this.#created.remember(keyOf(known.get(id)!))
      known.update(conversation.state)
      return { ...conversation.view(), ...(warnings.length > 0 && { warnings: [...warnings] }) }
    } catch (error) {
      void this.#open.remove(id)
      throw error
    } finally {
      this.#busy.delete(id)
    }
  }

  async #removeMarked(id: string): Promise<void> {
    const { conversations, known, endOrphans, onDeleted } = this.#deps
    const { logger, storage, workspace } = conversations
    const opening = this.#open.remove(id)
    await this.#open.ended(id)
    const conversation = await opening?.catch((error: unknown) => {
      logger.warn({ err: error, conversation_id: id }, 'deleting what could not be opened')
      return undefined
    })
    const state = conversation?.state ?? (await stateOnDisk(storage, id))
    await conversation?.dispose('deleted')
    // One that was opened ends its own processes; those of one that never was were ended at the start of the server.
    if (opening && !conversation) await endOrphans((each) => each === id)
    await removeData({ storage, workdirBase: workspace.workdirRules.base }, id, state)
    this.#open.forget(id)
    await known.forget(id)
    onDeleted({ id, userId: state?.settings.user_id })
  }

  async #viewWithoutOpening(id: string): Promise<ConversationView | undefined> {
    const { known, conversations } = this.#deps
    const conversation = await this.#open.ifOpen(id)
    if (conversation) return conversation.view()
    const view = await known.viewAtRest(id)
    if (view || !known.has(id)) return view
    // Somebody took `meta.json` away, or it could not be written.
    const reopened = await this.open(id).catch(() => undefined)
    if (reopened) {
      known.update(reopened.state)
      return reopened.view()
    }
    const state = await readSnapshot(conversations.storage, id)
    const now = known.get(id)
    return now && viewOf(damaged(state, now))
  }
}
