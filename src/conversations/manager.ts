/**
 * ConversationManager: creates, forks, finds, lists, deletes and closes conversations. `Conversation` handles what
 * happens inside one.
 */
import type {
  ConversationCount,
  ConversationView,
  CountConversations,
  CreateConversation,
  ForkConversation,
  ListConversations,
} from '../contract/conversation.ts'
import type { ConversationSummaries } from '../contract/conversations/summary.ts'
import type { ListAllRequests, WaitingRequests } from '../contract/request.ts'
import { settlesWithin } from '../lib/bounded-wait.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Conversation } from './conversation.ts'
import type { ReplayLimits } from './replay-fork.ts'
import { createConversation, type CreatedConversation, type CreateOptions } from './create.ts'
import { forkConversation, withForkedFiles } from './fork.ts'
import { findForkSource } from './fork-source.ts'
import { resumeDeliveries } from '../webhooks/resume-deliveries.ts'
import type { State } from '../state/state.ts'
import type { Idempotency } from '../state/idempotency.ts'
import { CreateOnce } from '../idempotency/create-once.ts'
import { CallbackPages } from './registry/callback-pages.ts'
import { Attendance } from './registry/attendance.ts'
import { ConversationPages, type ViewPage } from './registry/conversation-pages.ts'
import { HiddenForks } from './registry/hidden-forks.ts'
import { keyOf } from './registry/known-conversations.ts'
import type { Summary } from '../storage/storage.ts'
import { summarize, type IsVisible } from './registry/listing.ts'
import { OpenConversations, type OpenConversationsDeps } from './open-conversations.ts'
import { deletedProblem } from './registry/phases.ts'
import { removeConversation } from './registry/removal.ts'
import type { StartUpDeps } from './registry/start-up.ts'
import { WaitingRequestPages } from './registry/waiting-requests.ts'
import { UsageReports } from './usage/usage-reports.ts'
import { reportLeftProcesses, reportUnclosed } from './registry/stop-report.ts'

/** Milliseconds that a delete waits. It then continues in the background: a hanging process or file system blocks no client. */
const DELETE_TIMEOUT_MS = 4500

/** Milliseconds that a shutdown waits for its conversations. Processes that are still running are killed after that. */
const CLOSE_TIMEOUT_MS = 6000

export type ManagerDeps = OpenConversationsDeps &
  Pick<StartUpDeps, 'endOrphans'> & {
    /** Called when a conversation is permanently deleted. */
    readonly onDeleted: (conversation: Pick<Summary, 'id' | 'userId' | 'profile'>) => void
    /** Ends the remaining processes of all conversations; returns the pids of those that could not be ended. */
    readonly endProcesses: () => Promise<readonly number[]>
    /** Returns the request with the fields of its profile. Throws `profile_not_found`. */
    readonly withProfile: (request: CreateConversation) => Promise<CreateConversation>
    /** Replaces `CLOSE_TIMEOUT_MS`. */
    readonly closeTimeoutMs?: number
  }

type DeleteOptions = { readonly freesKey?: boolean; readonly lastSeq?: number }

export class ConversationManager {
  readonly attendance = new Attendance()
  readonly hidden = new HiddenForks()
  readonly usage: UsageReports
  readonly callbacks: CallbackPages
  readonly #deps: ManagerDeps
  readonly #open: OpenConversations
  readonly pages: ConversationPages
  readonly #waiting: WaitingRequestPages
  readonly #created: CreateOnce<ConversationView>
  #starting: Promise<void> | undefined

  constructor(deps: ManagerDeps) {
    this.#deps = deps
    const open = (this.#open = new OpenConversations(deps))
    const { attendance } = this
    const { knownConversations: registry, conversations } = deps
    const { shared } = conversations.storage
    this.#created = new CreateOnce(shared, (id) => this.#earlierAnswer(id), registry.untilComplete)
    this.pages = new ConversationPages({ registry, open, attendance, conversations })
    this.#waiting = new WaitingRequestPages({ conversations: registry, open, isShared: shared !== undefined })
    this.usage = new UsageReports({ registry, storage: conversations.storage })
    this.callbacks = new CallbackPages({ registry, open, storage: conversations.storage })
  }

  /**
   * Reads the existing conversations and recovers those that a server stop interrupted. Call it first. Throws if the
   * manager is closed meanwhile.
   */
  start(): Promise<void> {
    return (this.#starting = this.#start())
  }

  async #start(): Promise<void> {
    const { signal } = this.#open
    const { knownConversations, onDeleted } = this.#deps
    const listeners = { onDeleted, onAdded: this.hidden.relearn, onKeys: this.#created.remember }
    await knownConversations.load({ ...listeners, signal })
    signal.throwIfAborted()
    await this.#open.recoverActive()
    signal.throwIfAborted()
    this.#open.watchDeadlines()
    this.#open.watchOrphans()
    await this.hidden.learn(this.#deps.conversations.storage.replays)
    knownConversations.follow()
  }

  /** Opens conversations with pending webhook deliveries; open ones deliver by themselves. */
  async resumeDeliveries(): Promise<void> {
    const { storage, logger } = this.#deps.conversations
    await resumeDeliveries({ storage, logger, open: (id) => this.open(id) })
  }

  /** Throws a `Problem` if it does not exist, was deleted, or its log is damaged. */
  readonly open = (id: string): Promise<Conversation> => this.#open.open(id)
  /** Opens it, and continues a run that was cut off. */
  readonly recover = (id: string): Promise<Conversation> => this.#open.recover(id)

  /** The number of conversations in memory: open, or being opened, closed or deleted. */
  get openCount(): number {
    return this.#open.size
  }

  /** See `OpenConversations.hold`. */
  readonly hold = (id: string): (() => void) => this.#open.hold(id)

  /**
   * Idempotent: the same key and body within a day returns the same conversation and creates no second one. `mayUse`
   * throws a `Problem` if the client may not use the hooks of settings files.
   */
  async create(
    request: CreateConversation,
    idempotency?: Idempotency,
    { mayUse = () => {}, mayConnect = () => {} }: Partial<Pick<CreateOptions, 'mayUse' | 'mayConnect'>> = {},
  ): Promise<ConversationView> {
    const { conversations, knownConversations } = this.#deps
    const { signal } = this.#open
    this.#open.refuseWhenClosing(conversations.leaving)
    const options = { idempotency, mayUse, mayConnect, signal, onChange: knownConversations.update }
    const make = async (id: string) => {
      const whole = request.profile === undefined ? request : await this.#deps.withProfile(request)
      return await createConversation(conversations, { id, ...options, request: whole })
    }
    this.hidden.refuse(request.id)
    // Its log is short: `meta.json` is written when the conversation first changes or is closed.
    return await this.#once(idempotency, request.id, (id) => this.#make(id, request, make, knownConversations.refresh))
  }

  /** Creates a conversation from the current state of another one. Accepts an idempotency key, as `create` does. */
  async fork(
    sourceId: string,
    request: ForkConversation,
    idempotency?: Idempotency,
    replay?: ReplayLimits,
  ): Promise<ConversationView> {
    const { conversations, knownConversations } = this.#deps
    if (!replay) this.hidden.refuse(request.id)
    const view = await this.#once(idempotency, request.id, async (id) => {
      const source = await (replay ? this.source(sourceId) : this.open(sourceId))
      const options = { request, idempotency, signal: this.#open.signal, onChange: knownConversations.update, replay }
      try {
        const make = () => forkConversation(conversations, source, { id, ...options })
        return await this.#make(id, request, make, knownConversations.update)
      } catch (error) {
        throw (await knownConversations.seek(sourceId)) ? error : deletedProblem(sourceId)
      }
    })
    return await withForkedFiles(view, (await this.open(view.id)).log)
  }

  /** Returns what a replay reads of it. */
  readonly source = (id: string) => findForkSource(this.#deps.conversations, id, this.open)

  /** Returns one page, newest first by default. Opens no log. */
  async list(query: ListConversations, isVisible?: IsVisible): Promise<ViewPage> {
    await this.upToDate()
    return await this.pages.page(query, this.hidden.visibleTo(isVisible))
  }

  /** Returns the same page as short rows, from memory. */
  async summaries(query: ListConversations, isVisible?: IsVisible): Promise<ConversationSummaries> {
    await this.upToDate()
    return await this.pages.summaries(query, this.hidden.visibleTo(isVisible))
  }

  /** Returns one page of what waits in all conversations, the oldest first. */
  async requests(query: ListAllRequests, isVisible?: IsVisible): Promise<WaitingRequests> {
    await this.upToDate()
    return await this.#waiting.page(query, this.hidden.visibleTo(isVisible))
  }

  /** Resolves when the conversations of other instances are known as they are now. Throws the `Problem` of the storage. */
  readonly upToDate = (): Promise<void> => this.#deps.knownConversations.upToDate()

  /** Counts as of the last `upToDate`. */
  count(query: CountConversations, isVisible?: IsVisible): ConversationCount {
    return this.#deps.knownConversations.count(query, this.hidden.visibleTo(isVisible))
  }

  /** Returns who owns it, and the beginning of its first message; undefined if it does not exist. `find` also asks the storage. */
  readonly ownerOf = (id: string): Pick<Summary, 'id' | 'userId' | 'profile' | 'preview'> | undefined =>
    this.#deps.knownConversations.get(id)
  readonly find = (id: string): Promise<Summary | undefined> => this.#deps.knownConversations.find(id)

  /** True if there was one with this id. */
  readonly wasDeleted = (id: string): Promise<boolean> => this.#deps.conversations.storage.deletions.has(id)

  /** Returns a redactor for messages about a conversation. Without effect if it is not open: its secrets are not known then. */
  async redactFor(id: string): Promise<(text: string) => string> {
    return (await this.#open.ifOpen(id))?.redact ?? ((text) => text)
  }

  /**
   * Deletes the conversation; it cannot be found from now on. When this resolves, its processes are dead and its data
   * is removed, unless that takes longer than `DELETE_TIMEOUT_MS`; then it continues in the background. Removes the
   * workdir only if the server created it. With `freesKey`, the key of its create creates another one from now on. With
   * `lastSeq` it throws `conversation_changed` if the log has a later event.
   */
  async delete(id: string, { freesKey = false, lastSeq }: DeleteOptions = {}): Promise<void> {
    const { logger, storage } = this.#deps.conversations
    this.#open.refuseWhenClosing()
    const summary = await this.find(id)
    if (!summary) throw await this.#open.missingProblem(id)
    const keys = keyOf(summary)
    const mark = () => storage.deletions.mark(id, freesKey ? undefined : keys[0])
    const { removed } = await this.#open.delete(
      id,
      async () => (lastSeq === undefined ? mark() : (await this.open(id)).log.endAt(lastSeq, mark)),
      (openedConversation) => this.#remove(summary, openedConversation),
    )
    await (freesKey ? this.#created.forget(keys) : this.#created.remember(keys))
    if (await settlesWithin(DELETE_TIMEOUT_MS, removed)) return
    logger.warn({ conversation_id: id }, 'deleting a conversation takes long; it continues in the background')
    removed.catch((error: unknown) => logger.error({ err: error, conversation_id: id }, 'a delete failed'))
  }

  /** Hands everything over to other instances; `close` must follow. See `OpenConversations.leave`. */
  readonly leave = (deadline: AbortSignal): Promise<void> => this.#open.leave(deadline)

  /** Keeps what these names stand for from being handed over until the returned function is called; see `PendingRequests`. */
  readonly beginRequest = (names: readonly string[]): (() => void) => this.#open.requests.begin(names)

  /** Resolves to true if the conversation is open, and to false when it is closed. */
  readonly isHere = (id: string): Promise<boolean> => this.#open.isHere(id)

  /** Ends every run, stream and process within a time limit; call it last. Returns true if all have ended. */
  async close(): Promise<boolean> {
    const { logger, storage } = this.#deps.conversations
    this.#open.stop()
    await this.#starting?.catch(() => {}) // reported to the caller that started it
    await settlesWithin(this.#deps.closeTimeoutMs ?? CLOSE_TIMEOUT_MS, this.#open.closeAll())
    const areClosed = reportUnclosed(logger, this.#open.unclosed())
    await this.#deps.knownConversations.settled()
    await storage.settled()
    return reportLeftProcesses(logger, await this.#deps.endProcesses()) && areClosed
  }

  async #once(
    idempotency: Idempotency | undefined,
    id = uuid7(),
    make: (id: string) => Promise<ConversationView>,
  ): Promise<ConversationView> {
    this.#open.refuseWhenClosing()
    return await (idempotency ? this.#created.run(idempotency, id, () => make(id)) : make(id))
  }

  async #earlierAnswer(id: string): Promise<ConversationView> {
    const conversation = await this.open(id)
    const warnings = conversation.state.settings.idempotency?.warnings
    return { ...conversation.view(), ...(warnings && { warnings }) }
  }

  async #make(
    id: string,
    wantedId: Pick<CreateConversation, 'id'>,
    make: (id: string) => Promise<CreatedConversation>,
    note: (state: State) => void,
  ): Promise<ConversationView> {
    let warnings: readonly string[] = []
    const conversation = await this.#open.create(id, async () => {
      if (wantedId.id !== undefined && (await this.wasDeleted(id))) throw deletedProblem(id)
      // A concurrent shutdown closes what was added before it, and nothing that is added later.
      this.#open.refuseWhenClosing()
      const creation = await make(id)
      warnings = creation.warnings
      return creation.conversation
    })
    this.#created.remember(keyOf(summarize(conversation.state)))
    note(conversation.state)
    return { ...conversation.view(), ...(warnings.length > 0 && { warnings: [...warnings] }) }
  }

  async #remove(summary: Summary, openedConversation: Promise<Conversation> | undefined): Promise<void> {
    await removeConversation({ ...this.#deps, usage: this.usage }, summary, openedConversation)
    this.#open.forget(summary.id)
    this.hidden.delete(summary.id)
    await this.#deps.knownConversations.forget(summary.id)
  }
}
