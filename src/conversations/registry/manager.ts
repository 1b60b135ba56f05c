/** ConversationManager: makes, finds, lists and ends conversations. It owns which there are; what happens inside one is the actor's. */
import type {
  ConversationView,
  CountConversations,
  CreateConversation,
  ForkConversation,
  ListConversations,
  UpdateConfig,
} from '../../contract/conversation.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { settlesWithin } from '../../lib/bounded-wait.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import { mapBounded } from '../../lib/map-bounded.ts'
import type { Opened } from '../assemble.ts'
import { resumeDeliveries } from '../webhooks/resume-deliveries.ts'
import type { Conversation } from '../conversation.ts'
import { viewOf } from '../state/view.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { CreatedKeys } from '../idempotency/created-keys.ts'
import { answerOnce } from '../idempotency/idempotency.ts'
import { createInFlight } from '../idempotency/in-flight.ts'
import type { IdleOptions } from '../idle/idle-watch.ts'
import { watchIdle } from '../idle/idle-watch.ts'
import { Uses } from '../idle/uses.ts'
import type { IsVisible, Summary } from './listing.ts'
import { KnownConversations, keyOf } from './known-conversations.ts'
import { removeData, stateOnDisk } from './removal.ts'
import { Recovery } from './recovery.ts'
import { damaged } from './resting-views.ts'
import type { StartUpDeps } from './start-up.ts'
import type { State } from '../state/state.ts'

/** Conversations looked at, or opened, at the same time. */
const START_CONCURRENCY = 64

/**
 * How long a delete waits for the end of what runs in the conversation, and for the removal of its data, milliseconds. It
 * then answers, and goes on: what the kernel does not end, or a file system does not do, keeps nobody waiting.
 */
const DELETE_TIMEOUT_MS = 4500

/** How long a stop of the server waits for its conversations, milliseconds. What they leave running is ended after that. */
const CLOSE_TIMEOUT_MS = 6000

export type ManagerDeps = StartUpDeps & {
  /** Told when a conversation is gone for good. */
  readonly onDeleted: (conversation: Pick<Summary, 'id' | 'userId'>) => void
  /** When conversations at rest are closed; without it they stay open. */
  readonly idle?: IdleOptions
  /** Ends the processes that any conversation has left; returns the pids of those that could not be ended. */
  readonly endProcesses: () => Promise<readonly number[]>
}

export class ConversationManager {
  readonly #deps: ManagerDeps
  readonly #index: KnownConversations
  readonly #openings = new Map<string, Promise<Opened>>()
  /** Ids on their way in or out, for which nothing else may begin. */
  readonly #busy = new Set<string>()
  readonly #created = new CreatedKeys()
  readonly #inFlight = createInFlight()
  /** Conversations that are being deleted, or closed because they are idle. */
  readonly #endings = new Map<string, Promise<void>>()
  readonly #stopping = new AbortController()
  readonly #recovery: Recovery
  readonly #uses = new Uses((id) => this.#openings.has(id))
  readonly #stopIdleWatch: (() => void) | undefined
  #starting: Promise<void> | undefined

  constructor(deps: ManagerDeps) {
    this.#deps = deps
    this.#index = new KnownConversations(deps)
    this.#recovery = new Recovery({
      ...deps,
      signal: this.#stopping.signal,
      isKnown: (id) => this.#index.has(id),
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

  /** Keeps a conversation from being closed as idle until the returned function is called. Nothing is opened. */
  hold(id: string): () => void {
    return this.#uses.hold(id)
  }

  /**
   * Reads which conversations there are, and looks after those that a stop of the server left half done. Nothing may be
   * asked of it before. Throws when it is closed meanwhile.
   */
  start(): Promise<void> {
    this.#starting = this.#start()
    return this.#starting
  }

  async #start(): Promise<void> {
    const keys = await this.#index.load(this.#stopping.signal)
    this.#created.remember(keys)
    this.#stopping.signal.throwIfAborted()
    await mapBounded(await this.#deps.catalog.activeIds(), START_CONCURRENCY, (id) => this.#recovery.recover(id))
  }

  /** Opens those that have something to deliver to callbacks; what is open delivers by itself. */
  async resumeDeliveries(): Promise<void> {
    await resumeDeliveries({ ...this.#deps, open: (id) => this.open(id) })
  }

  /** The same key and body again, within a day, is the same conversation: it is answered, and not made a second time. */
  async create(request: CreateConversation, idempotency?: Idempotency): Promise<ConversationView> {
    return await this.#once(idempotency, () =>
      this.#make(request.id, (id) => this.#deps.assembler.create(id, request, idempotency, this.#onChange)),
    )
  }

  /** A conversation of its own from what another one is by now. With a key as a create. */
  async fork(sourceId: string, request: ForkConversation, idempotency?: Idempotency): Promise<ConversationView> {
    const { signal } = this.#stopping
    return await this.#once(idempotency, async () => {
      const source = await this.open(sourceId)
      return await this.#make(request.id, (id) =>
        this.#deps.assembler.fork(source, { id, request, idempotency, signal }, this.#onChange),
      )
    })
  }

  async #once(idempotency: Idempotency | undefined, make: () => Promise<ConversationView>): Promise<ConversationView> {
    this.#refuseWhenClosing()
    if (!idempotency) return await make()
    return await answerOnce(idempotency, {
      remembered: this.#created.of(idempotency.key),
      make: () => this.#inFlight(idempotency.key, make),
      again: ({ id }) => this.#tellAgain(id),
    })
  }

  async #tellAgain(id: string): Promise<ConversationView> {
    const { conversation } = await this.open(id)
    const warnings = conversation.state.settings.idempotency?.warnings
    return { ...conversation.view(), ...(warnings && { warnings }) }
  }

  async #make(
    wantedId: string | undefined,
    assemble: (id: string) => Promise<{ opened: Opened; warnings: readonly string[] }>,
  ): Promise<ConversationView> {
    const id = wantedId ?? uuid7()
    if (this.#index.has(id) || this.#busy.has(id))
      throw new Problem('conversation_exists', `There is a conversation ${id} already.`)
    this.#busy.add(id)
    try {
      if (wantedId !== undefined && (await this.#deps.catalog.isDeleted(id))) throw deleted(id)
      // A stop that began meanwhile closes what is in `#openings` by then, and nothing that comes later.
      this.#refuseWhenClosing()
      const made = assemble(id)
      const opening = made.then(({ opened }) => opened)
      // Already now: a stop of the server waits for what is on its way, and closes it.
      this.#openings.set(id, opening)
      const { conversation } = await opening
      const { warnings } = await made
      this.#index.set(conversation.state)
      this.#created.remember(keyOf(this.#index.get(id)!))
      this.#onChange(conversation.state)
      this.#recovery.watch(conversation)
      return { ...conversation.view(), ...(warnings.length > 0 && { warnings: [...warnings] }) }
    } catch (error) {
      this.#openings.delete(id)
      throw error
    } finally {
      this.#busy.delete(id)
    }
  }

  /** Its parts. Throws a `Problem` when it does not exist, was deleted, or its log is damaged. */
  async open(id: string): Promise<Opened> {
    this.#uses.note(id)
    for (;;) {
      this.#refuseWhenClosing()
      if (!this.#index.has(id)) throw await this.#whyMissing(id)
      // From the look at the index to here nothing is awaited: a delete finds in `#openings` all that it has to close.
      const opening = this.#openings.get(id)
      const ending = this.#endings.get(id)
      if (!opening && ending) {
        // It is being closed as idle: two objects must not write to one log.
        await ending
        continue
      }
      if (!opening) return await this.#reopen(id, undefined)
      const opened = await opening
      if (!opened.conversation.failed && this.#index.has(id)) return opened
      // Whoever comes first opens it anew; the others wait for the same.
      if (opened.conversation.failed && this.#openings.get(id) === opening) return await this.#reopen(id, opened)
    }
  }

  async get(id: string): Promise<Conversation> {
    return (await this.open(id)).conversation
  }

  async view(id: string): Promise<ConversationView> {
    return (await this.get(id)).view()
  }

  /** One page, newest first unless asked otherwise. Opens no log. */
  async list(
    query: ListConversations,
    isVisible?: IsVisible,
  ): Promise<{ items: ConversationView[]; next_page_id: string | null }> {
    const { ids, nextPageId } = this.#index.page(query, isVisible)
    const views = await mapBounded(ids, START_CONCURRENCY, (id) => this.#viewWithoutOpening(id))
    return { items: views.filter((view) => view !== undefined), next_page_id: nextPageId }
  }

  count(filter: CountConversations, isVisible?: IsVisible): number {
    return this.#index.count(filter, isVisible)
  }

  /** What decides who may see it; undefined when there is none. */
  ownerOf(id: string): Pick<Summary, 'id' | 'userId'> | undefined {
    return this.#index.get(id)
  }

  /** The last seq of each; undefined of those whose log could not be read. */
  heads(): Iterable<readonly [id: string, head: number | undefined]> {
    return this.#index.heads()
  }

  /** To be called with each log that is opened or made, before anything is appended to it. */
  attach(log: EventLog): void {
    this.#index.attach(log)
  }

  async configure(id: string, update: UpdateConfig): Promise<ConversationView> {
    const opened = await this.open(id)
    const { warnings, dropped } = await this.#deps.assembler.configure(opened, update)
    return {
      ...opened.conversation.view(),
      ...(warnings.length > 0 && { warnings: [...warnings] }),
      ...(dropped.length > 0 && { dropped: [...dropped] }),
    }
  }

  /** For what is said about a conversation outside of it; changes nothing of one that is not open, for then nothing of it is known. */
  async redactFor(id: string): Promise<(text: string) => string> {
    const opened = await this.#openings.get(id)?.catch(() => undefined)
    return opened?.redact ?? ((text) => text)
  }

  /**
   * From here on nobody finds it. Its processes are dead and its data gone when this resolves, unless that takes longer
   * than `DELETE_TIMEOUT_MS`: then it is done later. The workdir goes only if the server made it.
   */
  async delete(id: string): Promise<void> {
    this.#refuseWhenClosing()
    if (!this.#index.has(id)) throw await this.#whyMissing(id)
    // Known and busy: another request is deleting it already.
    if (this.#busy.has(id)) throw deleted(id)
    const { catalog, logger } = this.#deps
    this.#busy.add(id)
    try {
      // When this fails the conversation is as it was; from here on it is gone, whatever fails.
      const keys = keyOf(this.#index.get(id)!)
      await catalog.markDeleted(id, keys[0])
      this.#created.remember(keys)
      this.#index.delete(id)
    } catch (error) {
      this.#busy.delete(id)
      throw error
    }
    const removed = this.#ending(id, this.#removeMarked(id)).finally(() => this.#busy.delete(id))
    if (await settlesWithin(DELETE_TIMEOUT_MS, removed)) return
    logger.warn({ conversation_id: id }, 'deleting a conversation takes long; it goes on in the background')
    removed.catch((error: unknown) => logger.error({ err: error, conversation_id: id }, 'a delete failed'))
  }

  async #removeMarked(id: string): Promise<void> {
    const { logger } = this.#deps
    const opening = this.#openings.get(id)
    this.#openings.delete(id)
    await this.#endings.get(id)
    const opened = await opening?.catch((error: unknown) => {
      logger.warn({ err: error, conversation_id: id }, 'deleting what could not be opened')
      return undefined
    })
    const state = opened?.conversation.state ?? (await stateOnDisk(this.#deps, id))
    await opened?.dispose('deleted')
    // One that was opened ends its own processes; those of one that never was were ended at the start of the server.
    if (opening && !opened) await this.#deps.endOrphans((each) => each === id)
    await removeData(this.#deps, id, state)
    this.#recovery.forget(id)
    await this.#index.forget(id)
    this.#deps.onDeleted({ id, userId: state?.settings.user_id })
  }

  /**
   * Ends every run, stream and process within a bound; nothing can be asked of it afterwards. Returns whether all of it
   * has ended.
   */
  async close(): Promise<boolean> {
    const { logger } = this.#deps
    this.#stopping.abort()
    this.#stopIdleWatch?.()
    await this.#starting?.catch(() => {}) // reported to the caller that started it
    const closing = [...this.#openings.values()].map(async (opening) => (await opening).dispose('closing'))
    const closed = Promise.allSettled([...closing, ...this.#endings.values()])
    const isInTime = await settlesWithin(CLOSE_TIMEOUT_MS, closed)
    if (!isInTime) logger.warn('some conversations did not close in time')
    await Promise.all([this.#deps.catalog.settled(), this.#deps.summaryFile.close()])
    const left = await this.#deps.endProcesses()
    if (left.length > 0) logger.error({ pids: left }, 'processes of conversations could not be ended')
    return isInTime && left.length === 0
  }

  /** Notes that this conversation is being taken apart. */
  #ending<T>(id: string, work: Promise<T>): Promise<T> {
    const ended = settled(work).finally(() => this.#endings.get(id) === ended && this.#endings.delete(id))
    this.#endings.set(id, ended)
    return work
  }

  /** Closes it if it is at rest, so that it takes no memory; the next request for it opens it again. Never rejects. */
  async #closeAtRest(id: string): Promise<void> {
    const { catalog, logger } = this.#deps
    const opening = this.#openings.get(id)
    const isUnused = this.#uses.watch(id)
    try {
      const opened = await opening
      if (!opened || !(await opened.isAtRest())) return
      const { state } = opened.conversation
      // Lists show it from there while it is closed.
      await catalog.write(state)
      if (!isUnused() || opened.conversation.state !== state) return
      if (this.#openings.get(id) !== opening || this.#busy.has(id) || this.#stopping.signal.aborted) return
      // From the checks to here nothing is awaited: who comes later finds it in `#endings`, and waits.
      this.#openings.delete(id)
      await this.#ending(id, opened.dispose('closing'))
    } catch (error) {
      logger.error({ err: error, conversation_id: id }, 'a conversation at rest could not be closed')
    }
  }

  readonly #onChange = (state: State): void => {
    if (!this.#index.has(state.id)) return
    this.#index.set(state)
    this.#deps.catalog
      .write(state)
      .catch(
        (error: unknown) =>
          this.#index.has(state.id) &&
          this.#deps.logger.warn({ err: error, conversation_id: state.id }, 'meta.json could not be written'),
      )
  }

  #reopen(id: string, failed: Opened | undefined): Promise<Opened> {
    const opening = this.#openFromDisk(id, failed)
    this.#openings.set(id, opening)
    return opening
  }

  /** `failed` is the object whose log could not be trusted any more, to be given up first. */
  async #openFromDisk(id: string, failed: Opened | undefined): Promise<Opened> {
    try {
      await failed?.dispose('closing')
      const opened = await this.#deps.assembler.open(id, this.#onChange)
      try {
        await opened.conversation.recover(this.#recovery.reasonFor(id))
        await opened.deliveries.start()
      } catch (error) {
        await opened.dispose('closing')
        throw error
      }
      this.#index.set(opened.conversation.state)
      this.#recovery.watch(opened.conversation)
      return opened
    } catch (error) {
      this.#openings.delete(id)
      const summary = this.#index.get(id)
      const told = summary && isNotFound(error) ? logIsGone(error) : error
      if (summary && told instanceof Problem && told.code === 'conversation_damaged') this.#index.setDamaged(id)
      throw told
    }
  }

  async #viewWithoutOpening(id: string): Promise<ConversationView | undefined> {
    const opened = await this.#openings.get(id)?.catch(() => undefined)
    if (opened) return opened.conversation.view()
    const view = await this.#index.viewAtRest(id)
    if (view || !this.#index.has(id)) return view
    // Somebody took `meta.json` away, or it could not be written.
    const reopened = await this.open(id).catch(() => undefined)
    if (reopened) {
      this.#onChange(reopened.conversation.state)
      return reopened.conversation.view()
    }
    const state = await this.#deps.catalog.read(id)
    const now = this.#index.get(id)
    return now && viewOf(damaged(state, now))
  }

  async #whyMissing(id: string): Promise<Problem> {
    if (await this.#deps.catalog.isDeleted(id)) return deleted(id)
    return new Problem('conversation_not_found', `There is no conversation ${id}.`)
  }

  #refuseWhenClosing(): void {
    if (this.#stopping.signal.aborted)
      throw new Problem('unavailable', 'The server is stopping; try again when it is up.')
  }
}

/** Resolves when the work is over; the caller learns whether it failed. */
async function settled(work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([work])
}

const deleted = (id: string) => new Problem('conversation_deleted', `Conversation ${id} has been deleted.`)

const isNotFound = (error: unknown) => error instanceof Problem && error.code === 'conversation_not_found'

/** Of a conversation that is known: somebody took its file away. */
const logIsGone = (cause: unknown) =>
  new Problem(
    'conversation_damaged',
    'The event log of this conversation is gone. Restore events.jsonl from a backup, or delete the conversation.',
    { cause },
  )
