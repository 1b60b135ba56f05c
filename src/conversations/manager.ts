/** ConversationManager: makes, finds, lists and ends conversations. It owns which there are; what happens inside one is the actor's. */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Conversation as ConversationView, CountConversations, CreateConversation, ListConversations, UpdateConfig } from '../contract/conversation.ts'
import { Problem } from '../contract/problem.ts'
import { uuid7 } from '../lib/uuid7.ts'
import { mapBounded } from '../lib/map-bounded.ts'
import type { Logger } from '../telemetry/logger.ts'
import type { Assembler, Opened } from './assembly.ts'
import type { Catalog } from './catalog.ts'
import type { Conversation } from './conversation.ts'
import { viewOf } from './conversation.ts'
import type { Summary } from './listing.ts'
import { listPage, matches, summarize } from './listing.ts'
import type { State } from './state.ts'

export type ManagerDeps = {
  readonly catalog: Catalog
  readonly assembler: Assembler
  readonly workdirBase: string
  readonly logger: Logger
}

/** Files of that many conversations are read at the same time at start. */
const START_CONCURRENCY = 64

/** How long a stop of the server waits for its conversations, milliseconds. */
const CLOSE_TIMEOUT_MS = 8000

export class ConversationManager {
  readonly #deps: ManagerDeps
  readonly #index = new Map<string, Summary>()
  readonly #open = new Map<string, Promise<Opened>>()
  /** Ids on their way in or out, for which nothing else may begin. */
  readonly #busy = new Set<string>()
  #closing = false

  constructor(deps: ManagerDeps) {
    this.#deps = deps
  }

  /** Reads which conversations there are, and looks after those that a stop of the server left half done. */
  async start(): Promise<void> {
    const { catalog } = this.#deps
    await this.#finishDeletions()
    await mapBounded(await catalog.ids(), START_CONCURRENCY, (id) => this.#indexOne(id))
    await mapBounded(await catalog.activeIds(), START_CONCURRENCY, (id) => this.#recoverOne(id))
  }

  async create(request: CreateConversation): Promise<ConversationView> {
    this.#refuseWhenClosing()
    const id = request.id ?? uuid7()
    if (this.#index.has(id) || this.#busy.has(id)) throw new Problem('conversation_exists', `There is a conversation ${id} already.`)
    this.#busy.add(id)
    try {
      if (request.id !== undefined && (await this.#deps.catalog.isDeleted(id))) throw deleted(id)
      const { opened, warnings } = await this.#deps.assembler.create(id, request, this.#onChange)
      this.#open.set(id, Promise.resolve(opened))
      const state = opened.conversation.state
      this.#index.set(id, summarize(state))
      await this.#deps.catalog.write(state)
      return { ...opened.conversation.view(), ...(warnings.length > 0 && { warnings: [...warnings] }) }
    } finally {
      this.#busy.delete(id)
    }
  }

  /** Throws a `Problem` when it does not exist, was deleted, or its log is damaged. */
  async get(id: string): Promise<Conversation> {
    this.#refuseWhenClosing()
    return (await this.#opened(id)).conversation
  }

  async view(id: string): Promise<ConversationView> {
    return (await this.get(id)).view()
  }

  /** One page, newest first unless asked otherwise. Opens no log. */
  async list(query: ListConversations): Promise<{ items: ConversationView[]; next_page_id: string | null }> {
    const { ids, nextPageId } = listPage(this.#index.values(), query)
    const views = await mapBounded(ids, START_CONCURRENCY, (id) => this.#viewWithoutOpening(id))
    return { items: views.filter((view) => view !== undefined), next_page_id: nextPageId }
  }

  count(filter: CountConversations): number {
    return this.#index.values().reduce((count, summary) => count + (matches(summary, filter) ? 1 : 0), 0)
  }

  async configure(id: string, update: UpdateConfig): Promise<ConversationView> {
    this.#refuseWhenClosing()
    const opened = await this.#opened(id)
    const warnings = await this.#deps.assembler.configure(opened, update)
    return { ...opened.conversation.view(), ...(warnings.length > 0 && { warnings: [...warnings] }) }
  }

  /** Its processes are dead and its data gone when this resolves; the workdir goes only if the server made it. */
  async delete(id: string): Promise<void> {
    this.#refuseWhenClosing()
    if (!this.#index.has(id) || this.#busy.has(id)) throw await this.#whyMissing(id)
    const { catalog, logger } = this.#deps
    const opening = this.#open.get(id)
    this.#busy.add(id)
    this.#index.delete(id)
    try {
      await catalog.markDeleted(id)
      const opened = await opening?.catch((error: unknown) => void logger.warn({ err: error, conversation_id: id }, 'deleting what could not be opened'))
      const state = opened?.conversation.state ?? (await catalog.read(id))
      await opened?.dispose('deleted')
      await this.#removeData(id, state)
    } finally {
      this.#open.delete(id)
      this.#busy.delete(id)
    }
  }

  /** Ends every run, stream and process within a bound; nothing can be asked of it afterwards. */
  async close(): Promise<void> {
    this.#closing = true
    const closing = Promise.allSettled([...this.#open.values()].map(async (opening) => (await opening).dispose('closing')))
    const { promise: late, resolve } = Promise.withResolvers<'late'>()
    const timer = setTimeout(() => resolve('late'), CLOSE_TIMEOUT_MS)
    if ((await Promise.race([closing, late])) === 'late') this.#deps.logger.warn('some conversations did not close in time')
    clearTimeout(timer)
  }

  readonly #onChange = (state: State): void => {
    if (!this.#index.has(state.id)) return
    this.#index.set(state.id, summarize(state))
    this.#deps.catalog
      .write(state)
      .catch((error: unknown) => this.#index.has(state.id) && this.#deps.logger.warn({ err: error, conversation_id: state.id }, 'meta.json could not be written'))
  }

  async #opened(id: string): Promise<Opened> {
    if (!this.#index.has(id)) throw await this.#whyMissing(id)
    const opening = this.#open.get(id)
    const opened = await opening
    if (opened && !opened.conversation.failed) return opened
    // Whoever comes first opens it; the others wait for the same.
    if (this.#open.get(id) === opening) this.#open.set(id, this.#openFromDisk(id, opened))
    return await this.#open.get(id)!
  }

  /** `failed` is the object whose log could not be trusted any more, to be given up first. */
  async #openFromDisk(id: string, failed: Opened | undefined): Promise<Opened> {
    try {
      await failed?.dispose('closing')
      const opened = await this.#deps.assembler.open(id, this.#onChange)
      await opened.conversation.recover()
      this.#onChange(opened.conversation.state)
      return opened
    } catch (error) {
      this.#open.delete(id)
      const summary = this.#index.get(id)
      if (summary && error instanceof Problem && error.code === 'conversation_damaged') this.#index.set(id, { ...summary, status: 'error' })
      throw error
    }
  }

  async #indexOne(id: string): Promise<void> {
    const { catalog, assembler, logger } = this.#deps
    const state = await catalog.read(id)
    if (state) return void this.#index.set(id, summarize(state))
    try {
      const folded = await assembler.readState(id)
      // Without a first event it was never told to anyone: a create that a crash cut off.
      if (!folded) return await rm(catalog.directoryOf(id), { recursive: true, force: true })
      this.#index.set(id, summarize(folded))
      await catalog.write(folded)
    } catch (error) {
      logger.error({ err: error, conversation_id: id }, 'this conversation cannot be read')
      this.#index.set(id, { id, status: 'error', createdAt: '', updatedAt: '', title: undefined, userId: undefined, preview: '' })
    }
  }

  async #recoverOne(id: string): Promise<void> {
    const { catalog, logger } = this.#deps
    if (!this.#index.has(id)) return await catalog.unmarkActive(id)
    try {
      const { conversation } = await this.#opened(id)
      const { status, reason, settings } = conversation.state
      const wasCutOff = status === 'paused' && (reason === 'server_restart' || reason === 'server_closing')
      if (wasCutOff && settings.resume_on_start) await conversation.run()
      else await catalog.unmarkActive(id)
    } catch (error) {
      logger.error({ err: error, conversation_id: id }, 'this conversation could not be recovered')
    }
  }

  async #viewWithoutOpening(id: string): Promise<ConversationView | undefined> {
    const opened = await this.#open.get(id)?.catch(() => undefined)
    if (opened) return opened.conversation.view()
    const state = await this.#deps.catalog.read(id)
    return state && viewOf({ ...state, status: this.#index.get(id)?.status ?? state.status })
  }

  async #finishDeletions(): Promise<void> {
    const { catalog, workdirBase } = this.#deps
    const gone = new Set(await catalog.deletedIds())
    for (const id of (await catalog.ids()).filter((id) => gone.has(id))) await this.#removeData(id, await catalog.read(id))
    const workdirs = await readdir(workdirBase).catch(() => [])
    for (const name of workdirs.filter((name) => gone.has(name))) await rm(join(workdirBase, name), { recursive: true, force: true })
  }

  /** The log last: until it is gone, a start of the server knows that there is something left to remove. */
  async #removeData(id: string, state: State | undefined): Promise<void> {
    const { catalog } = this.#deps
    if (state?.settings.owns_workdir) await rm(state.settings.workdir, { recursive: true, force: true })
    await catalog.unmarkActive(id)
    await rm(catalog.directoryOf(id), { recursive: true, force: true })
  }

  async #whyMissing(id: string): Promise<Problem> {
    if (await this.#deps.catalog.isDeleted(id)) return deleted(id)
    return new Problem('conversation_not_found', `There is no conversation ${id}.`)
  }

  #refuseWhenClosing(): void {
    if (this.#closing) throw new Problem('unavailable', 'The server is stopping; try again when it is up.')
  }
}

const deleted = (id: string) => new Problem('conversation_deleted', `Conversation ${id} has been deleted.`)
