/** The open conversations: each at most once, opened on demand, closed when idle or when the server stops. */
import { Problem } from '../../contract/problem.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import type { Conversation } from '../conversation.ts'
import type { ConversationDeps } from '../dependencies.ts'
import type { IdleOptions } from '../idle/idle-watch.ts'
import { watchIdle } from '../idle/idle-watch.ts'
import { Uses } from '../idle/uses.ts'
import { openConversation } from '../open.ts'
import type { KnownConversations } from './known-conversations.ts'
import { Recovery } from './recovery.ts'
import { writeSnapshot } from './snapshot.ts'

export type OpenConversationsDeps = {
  readonly conversations: ConversationDeps
  readonly known: KnownConversations
  /** When idle conversations are closed; without it they stay open. */
  readonly idle?: IdleOptions
  /** Returns true while it is being created or deleted. */
  readonly isBusy: (id: string) => boolean
}

/** Conversations recovered concurrently. */
const RECOVERY_CONCURRENCY = 64

export class OpenConversations {
  readonly #deps: OpenConversationsDeps
  readonly #openings = new Map<string, Promise<Conversation>>()
  /** Conversations that are being deleted, or closed because they are idle. */
  readonly #endings = new Map<string, Promise<void>>()
  /** While the server stops. */
  readonly #unclosed = new Set<string>()
  readonly #stopping = new AbortController()
  readonly #recovery: Recovery
  readonly #uses = new Uses((id) => this.#openings.has(id))
  readonly #stopIdleWatch: (() => void) | undefined

  constructor(deps: OpenConversationsDeps) {
    this.#deps = deps
    this.#recovery = new Recovery({
      storage: deps.conversations.storage,
      logger: deps.conversations.logger,
      signal: this.#stopping.signal,
      isKnown: (id) => deps.known.has(id),
      open: (id) => this.open(id),
    })
    this.#stopIdleWatch =
      deps.idle &&
      watchIdle({
        ...deps.idle,
        uses: this.#uses,
        openIds: () => this.#openings.keys(),
        close: (id) => this.#closeAtRest(id),
        closeShells: (id, ms) => this.#closeIdleShells(id, ms),
      })
  }

  /** Aborted when the server stops. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** Keeps a conversation from being closed as idle until the returned function is called. Does not open it. */
  hold(id: string): () => void {
    return this.#uses.hold(id)
  }

  /** Throws a `Problem` if it does not exist, was deleted, or its log is damaged. */
  async open(id: string): Promise<Conversation> {
    this.#uses.note(id)
    for (;;) {
      this.refuseWhenClosing()
      if (!this.#deps.known.has(id)) throw await this.missingProblem(id)
      // There is no `await` between the check of the known conversations and this line: a delete finds everything it
      // must close in `#openings`.
      const opening = this.#openings.get(id)
      const ending = this.#endings.get(id)
      if (!opening && ending) {
        // It is being closed as idle: two objects must not write to one log.
        await ending
        continue
      }
      if (!opening) return await this.#reopen(id, undefined)
      const conversation = await opening
      if (!conversation.failed && this.#deps.known.has(id)) return conversation
      // The first caller reopens it; the others wait for the same promise.
      if (conversation.failed && this.#openings.get(id) === opening) return await this.#reopen(id, conversation)
    }
  }

  /** Returns undefined if it is not open or cannot be opened. */
  async ifOpen(id: string): Promise<Conversation | undefined> {
    return await this.#openings.get(id)?.catch(() => undefined)
  }

  /**
   * Adds a conversation that is being created, immediately: a shutdown waits for it and closes it. Call `remove` if the
   * creation fails.
   */
  add(id: string, opening: Promise<Conversation>): void {
    this.#openings.set(id, opening)
  }

  /** Marks an added conversation as complete. */
  complete(conversation: Conversation): void {
    this.#deps.known.set(conversation.state)
    this.#recovery.opened(conversation.id)
    this.#recovery.watch(conversation)
  }

  /** Removes it from the open ones. Returns the conversation that was open or being opened. */
  remove(id: string): Promise<Conversation> | undefined {
    const opening = this.#openings.get(id)
    this.#openings.delete(id)
    return opening
  }

  /** Resolves when it is not being closed any more. */
  async ended(id: string): Promise<void> {
    await this.#endings.get(id)
  }

  /** Marks this conversation as being closed until the work has finished. */
  endDuring<T>(id: string, work: Promise<T>): Promise<T> {
    const ended = settled(work).finally(() => this.#endings.get(id) === ended && this.#endings.delete(id))
    this.#endings.set(id, ended)
    return work
  }

  /** Forgets its recovery state. */
  forget(id: string): void {
    this.#recovery.forget(id)
  }

  /** Opens the conversations that a server stop interrupted. */
  async recoverActive(): Promise<void> {
    const { active } = this.#deps.conversations.storage
    await mapBounded(await active.ids(), RECOVERY_CONCURRENCY, (id) => this.#recovery.recover(id))
  }

  async missingProblem(id: string): Promise<Problem> {
    if (await this.#deps.conversations.storage.deletions.has(id)) return deletedProblem(id)
    return new Problem('conversation_not_found', `Conversation ${id} does not exist.`)
  }

  refuseWhenClosing(): void {
    if (this.#stopping.signal.aborted) throw stoppingProblem()
  }

  /** Opens and creates nothing from now on. */
  stop(): void {
    this.#stopping.abort(stoppingProblem())
    this.#stopIdleWatch?.()
  }

  /** Closes all, after `stop`. Never rejects. */
  async closeAll(): Promise<void> {
    const closing = [...this.#openings].map(([id, opening]) => this.#closeAtStop(id, opening))
    await Promise.all([...closing, ...this.#endings.values()])
  }

  /** The ids of those that `closeAll` has not closed yet, or could not close. */
  unclosed(): readonly string[] {
    return [...new Set([...this.#unclosed, ...this.#endings.keys()])]
  }

  /** Never rejects. */
  async #closeAtStop(id: string, opening: Promise<Conversation>): Promise<void> {
    this.#unclosed.add(id)
    const conversation = await opening.catch(() => undefined) // reported to the caller that opened it
    try {
      await conversation?.dispose('closing')
      this.#unclosed.delete(id)
    } catch (error) {
      this.#deps.conversations.logger.error({ err: error, conversation_id: id }, 'a conversation could not be closed')
    }
  }

  async #rest(conversation: Conversation): Promise<void> {
    await conversation.dispose('closing')
    this.#recovery.rest(conversation.state)
  }

  #reopen(id: string, failed: Conversation | undefined): Promise<Conversation> {
    const opening = this.#openFromDisk(id, failed)
    this.#openings.set(id, opening)
    return opening
  }

  /** `failed` is the object whose log cannot be trusted any more; it is closed first. */
  async #openFromDisk(id: string, failed: Conversation | undefined): Promise<Conversation> {
    const { conversations, known } = this.#deps
    try {
      await failed?.dispose('closing')
      const conversation = await openConversation(conversations, id, known.update)
      try {
        await conversation.start(this.#recovery.reasonFor(id))
      } catch (error) {
        await conversation.dispose('closing')
        throw error
      }
      this.complete(conversation)
      return conversation
    } catch (error) {
      this.#openings.delete(id)
      const isKnown = known.has(id)
      const reported = isKnown && isNotFound(error) ? logIsGone(error) : error
      if (isKnown && reported instanceof Problem && reported.code === 'conversation_damaged') known.setDamaged(id)
      throw reported
    }
  }

  /** Never rejects. */
  async #closeIdleShells(id: string, ms: number): Promise<void> {
    try {
      await (await this.ifOpen(id))?.closeIdleShells(ms)
    } catch (error) {
      this.#deps.conversations.logger.error({ err: error, conversation_id: id }, 'idle shells could not be closed')
    }
  }

  /** Closes it if it is idle, to free memory; the next request reopens it. Never rejects. */
  async #closeAtRest(id: string): Promise<void> {
    const { storage, logger } = this.#deps.conversations
    const opening = this.#openings.get(id)
    const isUnused = this.#uses.watch(id)
    try {
      const conversation = await opening
      if (!conversation || !(await conversation.isAtRest())) return
      const { state } = conversation
      // Lists read this file while it is closed.
      await writeSnapshot(storage, state)
      if (!isUnused() || conversation.state !== state) return
      if (this.#openings.get(id) !== opening || this.#deps.isBusy(id) || this.#stopping.signal.aborted) return
      // There is no `await` between the checks and this line: later requests find it in `#endings`, and wait.
      this.#openings.delete(id)
      await this.endDuring(id, this.#rest(conversation))
    } catch (error) {
      logger.error({ err: error, conversation_id: id }, 'an idle conversation could not be closed')
    }
  }
}

export const deletedProblem = (id: string) =>
  new Problem('conversation_deleted', `Conversation ${id} has been deleted.`)

const stoppingProblem = () => new Problem('unavailable', 'The server is stopping; try again when it is running.')

/** Resolves when the work has finished; its caller handles errors. */
async function settled(work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([work])
}

const isNotFound = (error: unknown) => error instanceof Problem && error.code === 'conversation_not_found'

/** The conversation is known, but its file was removed. */
const logIsGone = (cause: unknown) =>
  new Problem(
    'conversation_damaged',
    'The event log of this conversation is missing. Restore events.jsonl from a backup, or delete the conversation.',
    { cause },
  )
