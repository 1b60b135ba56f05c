/** The open conversations: each at most once, opened on demand, closed when idle or when the server stops. */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { Problem } from '../contract/problem.ts'
import { mapBounded } from '../lib/map-bounded.ts'
import type { Conversation } from './conversation.ts'
import type { ConversationDeps } from './dependencies.ts'
import type { IdleOptions } from './idle/idle-watch.ts'
import { IdleWatch } from './idle/idle-watch.ts'
import { Uses } from './idle/uses.ts'
import { openConversation } from './open.ts'
import type { KnownConversations } from './registry/known-conversations.ts'
import { Phases, deletedProblem, isNotFound, logIsGone } from './registry/phases.ts'
import { PendingRequests } from './registry/pending-requests.ts'
import { watchOrphans } from './registry/orphans.ts'
import { Recovery } from './registry/recovery.ts'

export type OpenConversationsDeps = {
  readonly conversations: ConversationDeps
  readonly knownConversations: KnownConversations
  /** The options by which idle conversations are closed; without them they stay open. */
  readonly idle?: IdleOptions
  /** Aborted by `leave`: see `ConversationDeps`. */
  readonly leaving?: AbortController
}

/** Conversations recovered concurrently. */
const RECOVERY_CONCURRENCY = 64

/** Conversations that a stop of the server begins to close in one turn of the event loop. */
const CLOSED_AT_ONCE = 16

export class OpenConversations {
  readonly #deps: OpenConversationsDeps
  readonly #phases: Phases
  /** Counted only where several instances share a database. */
  readonly requests = new PendingRequests()
  /** The conversations that are not closed yet while the server stops. */
  readonly #unclosed = new Set<string>()
  readonly #stopping = new AbortController()
  readonly #recovery: Recovery
  readonly #uses = new Uses((id) => this.#phases.openOf(id) !== undefined)
  readonly #idleWatch: IdleWatch | undefined

  constructor(deps: OpenConversationsDeps) {
    this.#deps = deps
    this.#phases = new Phases(deps.knownConversations)
    this.#recovery = new Recovery({
      ...deps.conversations,
      deadlines: deps.knownConversations.deadlines,
      signal: this.#stopping.signal,
      isKnown: (id) => deps.knownConversations.seek(id),
      open: (id) => this.open(id),
      drop: (conversation) => this.#drop(conversation),
    })
    this.#idleWatch =
      deps.idle &&
      new IdleWatch({
        ...deps.idle,
        uses: this.#uses,
        openIds: () => this.#phases.openIds(),
        close: (id) => this.#closeAtRest(id),
        closeShells: (id, ms) => this.#closeIdleShells(id, ms),
      })
  }

  /** Aborted when the server stops. */
  readonly signal: AbortSignal = this.#stopping.signal

  /** The number of those in memory: open, or being opened, closed or deleted. */
  get size(): number {
    return this.#phases.size
  }

  /** Keeps a conversation from being closed as idle until the returned function is called. Does not open it. */
  hold(id: string): () => void {
    const release = this.#uses.hold(id)
    return () => {
      release()
      this.#idleWatch?.noteUse()
    }
  }

  /** Throws a `Problem` if it does not exist, was deleted, or its log is damaged. */
  async open(id: string): Promise<Conversation> {
    this.#uses.note(id)
    for (;;) {
      this.refuseWhenClosing()
      if (!this.#deps.knownConversations.has(id)) {
        // One that is being created here is not known yet; another instance may have created it.
        if (!this.#phases.of(id) && (await this.#deps.knownConversations.seek(id))) continue
        throw await this.missingProblem(id)
      }
      // There is no `await` between the check of the known conversations and a new phase: a delete finds everything
      // that it must close.
      const phase = this.#phases.of(id)
      if (phase && 'ended' in phase) {
        // It is being closed as idle: two objects must not write to one log.
        await Promise.allSettled([phase.ended])
        continue
      }
      const current = phase && (await phase.conversation)
      // The first caller reopens it; the others wait for the same promise.
      if (current?.log.failed && this.#phases.of(id) !== phase) continue
      const conversation = current && !current.log.failed ? current : await this.#reopen(id, current)
      // It may have been deleted while it was being opened.
      if (this.#deps.knownConversations.has(id)) return conversation
    }
  }

  /** Returns undefined if it is not open or cannot be opened. */
  readonly ifOpen = async (id: string): Promise<Conversation | undefined> =>
    await this.#phases.openOf(id)?.conversation.catch(() => undefined)

  readonly openIds = (): Iterable<string> => this.#phases.openIds()
  readonly isHere = (id: string): Promise<boolean> => this.#phases.isHere(id)

  /** A shutdown waits for it and closes it. Throws a `Problem` if the id is in use. */
  async create(id: string, make: () => Promise<Conversation>): Promise<Conversation> {
    this.refuseWhenClosing()
    const conversation = await this.#phases.create(id, make)
    this.#watch(conversation)
    return conversation
  }

  /** See `Phases.delete`. */
  readonly delete: Phases['delete'] = (...deletion) => this.#phases.delete(...deletion)

  /** Opens it, and continues its run if an instance that has ended has cut it off. Throws a `Problem`. */
  readonly recover = (id: string): Promise<Conversation> => this.#recovery.recoverOnce(id)
  /** Forgets its recovery state. */
  readonly forget = (id: string): void => this.#recovery.forget(id)

  /** Opens the conversations that a server stop interrupted. */
  async recoverActive(): Promise<void> {
    const ids = await this.#deps.conversations.storage.active.ids()
    await mapBounded(ids, RECOVERY_CONCURRENCY, (id) => this.#recovery.recover(id))
  }

  /** Closes requests whose deadline passes, or has passed while the server was stopped. */
  watchDeadlines(): void {
    this.#deps.knownConversations.deadlines.watch(async (id) => {
      // It is held as a request does: it must not be closed as idle meanwhile.
      const release = this.hold(id)
      await this.#recovery.expire(id).finally(release)
    })
  }

  /** Recovers conversations whose instance dies, where several share a database. */
  readonly watchOrphans = (): void =>
    void watchOrphans({ ...this.#deps.conversations, takeOver: this.recover, signal: this.signal })

  async missingProblem(id: string): Promise<Problem> {
    if (await this.#deps.conversations.storage.deletions.has(id)) return deletedProblem(id)
    return new Problem('conversation_not_found', `Conversation ${id} does not exist.`)
  }

  refuseWhenClosing(stopping: AbortSignal | undefined = this.signal): void {
    if (stopping?.aborted) throw stoppingProblem()
  }

  /** Hands all over to other instances, at the latest when the deadline is aborted. Opens nothing from now on. Never rejects. */
  async leave(deadline: AbortSignal): Promise<void> {
    this.#deps.leaving?.abort()
    this.#idleWatch?.stop()
    this.#deps.knownConversations.deadlines.stop()
    const { handOverAll } = await import('./registry/hand-over.ts')
    const rest = (conversation: Conversation) => this.#rest(conversation)
    await handOverAll({ ...this.#deps.conversations, phases: this.#phases, requests: this.requests, rest }, deadline)
  }

  /** Opens and creates nothing from now on. */
  stop(): void {
    this.#stopping.abort(stoppingProblem())
    this.#idleWatch?.stop()
    this.#deps.knownConversations.deadlines.stop()
  }

  /** Closes all, after `stop`. Never rejects. */
  async closeAll(): Promise<void> {
    const isRunning = (id: string) => this.#deps.knownConversations.get(id)?.status === 'running'
    // Those that take longest begin first.
    const phases = (await this.#phases.settled()).sort(([a], [b]) => Number(isRunning(b)) - Number(isRunning(a)))
    const ending: Promise<unknown>[] = []
    for (const [id, phase] of phases) if ('conversation' in phase) this.#unclosed.add(id)
    for (const [at, [id, phase]] of phases.entries()) {
      ending.push('ended' in phase ? phase.ended : this.#close(id, phase.conversation))
      // All at once, none would be closed before all have begun, and no timer could end the wait for them.
      if (at % CLOSED_AT_ONCE === CLOSED_AT_ONCE - 1) await yieldToLoop()
    }
    await Promise.allSettled(ending)
  }

  /** The ids of those that `closeAll` has not closed yet, or could not close. */
  unclosed(): readonly string[] {
    const ending = this.#phases.current().flatMap(([id, phase]) => ('ended' in phase ? [id] : []))
    return [...new Set([...this.#unclosed, ...ending])]
  }

  /** Closes the conversation. Never rejects. */
  async #close(id: string, opening: Promise<Conversation>): Promise<void> {
    const conversation = await opening.catch(() => undefined) // reported to the caller that opened it
    try {
      await conversation?.dispose('closing')
      this.#unclosed.delete(id)
    } catch (error) {
      this.#deps.conversations.logger.error({ err: error, conversation_id: id }, 'a conversation could not be closed')
    }
  }

  async #rest(conversation: Conversation): Promise<void> {
    const { conversations } = this.#deps
    const { state } = conversation
    await conversation.dispose('closing')
    this.#recovery.rest(conversation.state)
    // What was stored while it was being closed may have begun something.
    const isWhole = conversations.leaving?.aborted ? conversation.canLeave : conversation.state === state
    if (isWhole && !conversation.log.failed) await conversations.storage.conversation(conversation.id).release()
  }

  /** Another writer has it: the object stores nothing more, and the next request asks the storage who that is. Never rejects. */
  async #drop(conversation: Conversation): Promise<void> {
    const { id } = conversation
    const phase = this.#phases.openOf(id)
    // A request may have replaced it already.
    if (!phase || (await phase.conversation.catch(() => undefined)) !== conversation) return
    await this.#phases.close(id, phase, () => this.#close(id, phase.conversation))
  }

  #reopen(id: string, former: Conversation | undefined): Promise<Conversation> {
    this.refuseWhenClosing(this.#deps.conversations.leaving)
    return this.#phases.open(id, () => this.#openFromDisk(id, former))
  }

  /** `failed` is the object whose log cannot be trusted any more; it is closed first. */
  async #openFromDisk(id: string, former: Conversation | undefined): Promise<Conversation> {
    const { conversations, knownConversations: registry } = this.#deps
    try {
      await former?.dispose('closing')
      const onReleased = (releasedId: string) => this.#recovery.wasReleased(releasedId)
      const { update: onChange, removeLeft: onTaken } = registry
      const conversation = await openConversation(conversations, id, { onChange, onTaken, onReleased })
      try {
        const why = this.#recovery.noticeOpening(id)
        if (why === 'owner_lost') conversations.metrics.cluster?.tookOver()
        // A request that has deleted it meanwhile disposes of it.
        if (registry.has(id)) await conversation.start(why)
      } catch (error) {
        await conversation.dispose('closing')
        throw error
      }
      registry.refresh(conversation.state)
      this.#watch(conversation)
      return conversation
    } catch (error) {
      // Another instance may have deleted it.
      if (isNotFound(error)) await registry.upToDate()
      if (!registry.has(id)) throw isNotFound(error) ? await this.missingProblem(id) : error
      const failure = isNotFound(error) ? logIsGone(error) : error
      if (failure instanceof Problem && failure.code === 'conversation_damaged') registry.setDamaged(id)
      throw failure
    }
  }

  #watch(conversation: Conversation): void {
    // One that is created is not held by the request that creates it.
    this.#uses.note(conversation.id)
    this.#idleWatch?.noteUse()
    this.#recovery.opened(conversation.id)
    this.#recovery.watch(conversation)
  }

  /** Closes the shells that are idle. Never rejects. */
  async #closeIdleShells(id: string, ms: number): Promise<void> {
    const { logger } = this.#deps.conversations
    const report = (err: unknown) => logger.error({ err, conversation_id: id }, 'idle shells could not be closed')
    await (await this.ifOpen(id))?.closeIdleShells(ms).catch(report)
  }

  /** Closes it if it is idle, to free memory; the next request reopens it. Never rejects. */
  async #closeAtRest(id: string): Promise<void> {
    const { logger } = this.#deps.conversations
    const phase = this.#phases.openOf(id)
    const isUnused = this.#uses.watch(id)
    try {
      const conversation = await phase?.conversation
      if (!phase || !conversation || !(await conversation.isAtRest())) return
      const { state } = conversation
      // It may have been deleted: no snapshot may follow then.
      if (this.#phases.of(id) !== phase) return
      // Lists read this file while it is closed.
      await this.#deps.knownConversations.store(state)
      if (!isUnused() || conversation.state !== state || this.#stopping.signal.aborted) return
      await this.#phases.close(id, phase, () => this.#rest(conversation))
    } catch (error) {
      logger.error({ err: error, conversation_id: id }, 'an idle conversation could not be closed')
    }
  }
}

const stoppingProblem = () => new Problem('unavailable', 'The server is stopping; try again when it is running.')
