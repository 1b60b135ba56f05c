/** The conversations that are open: each at most once, opened when it is asked for, closed when it is idle or the server stops. */
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
  /** When conversations at rest are closed; without it they stay open. */
  readonly idle?: IdleOptions
  /** Whether it is being made or deleted. */
  readonly isBusy: (id: string) => boolean
}

/** Conversations recovered at the same time. */
const RECOVERY_CONCURRENCY = 64

export class OpenConversations {
  readonly #deps: OpenConversationsDeps
  readonly #openings = new Map<string, Promise<Conversation>>()
  /** Conversations that are being deleted, or closed because they are idle. */
  readonly #endings = new Map<string, Promise<void>>()
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
      })
  }

  /** Aborted when the server stops. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** Keeps a conversation from being closed as idle until the returned function is called. Nothing is opened. */
  hold(id: string): () => void {
    return this.#uses.hold(id)
  }

  /** Throws a `Problem` when it does not exist, was deleted, or its log is damaged. */
  async open(id: string): Promise<Conversation> {
    this.#uses.note(id)
    for (;;) {
      this.refuseWhenClosing()
      if (!this.#deps.known.has(id)) throw await this.missingProblem(id)
      // From the look at what is known to here nothing is awaited: a delete finds in `#openings` all that it has to close.
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
      // The first caller opens it again; the others wait for the same.
      if (conversation.failed && this.#openings.get(id) === opening) return await this.#reopen(id, conversation)
    }
  }

  /** Undefined when it is not open, or cannot be opened. */
  async ifOpen(id: string): Promise<Conversation | undefined> {
    return await this.#openings.get(id)?.catch(() => undefined)
  }

  /** Adds one that is being made, at once: a stop of the server waits for it, and closes it. `remove` follows if it fails. */
  add(id: string, opening: Promise<Conversation>): void {
    this.#openings.set(id, opening)
  }

  /** One that `add` has added is complete. */
  complete(conversation: Conversation): void {
    this.#deps.known.set(conversation.state)
    this.#recovery.watch(conversation)
  }

  /** From here on nobody gets it. Returns what was open, or was being opened. */
  remove(id: string): Promise<Conversation> | undefined {
    const opening = this.#openings.get(id)
    this.#openings.delete(id)
    return opening
  }

  /** Resolves when nobody is closing it any more. */
  async ended(id: string): Promise<void> {
    await this.#endings.get(id)
  }

  /** Notes that this conversation is being closed until the work is over. */
  endDuring<T>(id: string, work: Promise<T>): Promise<T> {
    const ended = settled(work).finally(() => this.#endings.get(id) === ended && this.#endings.delete(id))
    this.#endings.set(id, ended)
    return work
  }

  /** Nothing is known of its recovery any more. */
  forget(id: string): void {
    this.#recovery.forget(id)
  }

  /** Opens those that a stop of the server left half done. */
  async recoverActive(): Promise<void> {
    const { active } = this.#deps.conversations.storage
    await mapBounded(await active.ids(), RECOVERY_CONCURRENCY, (id) => this.#recovery.recover(id))
  }

  async missingProblem(id: string): Promise<Problem> {
    if (await this.#deps.conversations.storage.deletions.has(id)) return deletedProblem(id)
    return new Problem('conversation_not_found', `There is no conversation ${id}.`)
  }

  refuseWhenClosing(): void {
    if (this.#stopping.signal.aborted)
      throw new Problem('unavailable', 'The server is stopping; try again when it is up.')
  }

  /** From now on nothing is opened or made. */
  stop(): void {
    this.#stopping.abort()
    this.#stopIdleWatch?.()
  }

  /** After `stop`. Never rejects. */
  async closeAll(): Promise<void> {
    const closing = [...this.#openings.values()].map(async (opening) => (await opening).dispose('closing'))
    await Promise.allSettled([...closing, ...this.#endings.values()])
  }

  #reopen(id: string, failed: Conversation | undefined): Promise<Conversation> {
    const opening = this.#openFromDisk(id, failed)
    this.#openings.set(id, opening)
    return opening
  }

  /** `failed` is the object whose log could not be trusted any more; it is closed first. */
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

  /** Closes it if it is at rest, so that it takes no memory; the next request for it opens it again. Never rejects. */
  async #closeAtRest(id: string): Promise<void> {
    const { storage, logger } = this.#deps.conversations
    const opening = this.#openings.get(id)
    const isUnused = this.#uses.watch(id)
    try {
      const conversation = await opening
      if (!conversation || !(await conversation.isAtRest())) return
      const { state } = conversation
      // Lists show it from there while it is closed.
      await writeSnapshot(storage, state)
      if (!isUnused() || conversation.state !== state) return
      if (this.#openings.get(id) !== opening || this.#deps.isBusy(id) || this.#stopping.signal.aborted) return
      // From the checks to here nothing is awaited: later requests find it in `#endings`, and wait.
      this.#openings.delete(id)
      await this.endDuring(id, conversation.dispose('closing'))
    } catch (error) {
      logger.error({ err: error, conversation_id: id }, 'a conversation at rest could not be closed')
    }
  }
}

export const deletedProblem = (id: string) =>
  new Problem('conversation_deleted', `Conversation ${id} has been deleted.`)

/** Resolves when the work is over; the caller learns whether it failed. */
async function settled(work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([work])
}

const isNotFound = (error: unknown) => error instanceof Problem && error.code === 'conversation_not_found'

/** Of a conversation that is known: somebody took its file away. */
const logIsGone = (cause: unknown) =>
  new Problem(
    'conversation_damaged',
    'The event log of this conversation is gone. Restore events.jsonl from a backup, or delete the conversation.',
    { cause },
  )
