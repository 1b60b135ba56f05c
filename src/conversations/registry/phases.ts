/**
 * Knows which conversations exist, and what happens to each of them now. The only file that decides it: each method is
 * one transition, from its first moment to its last, and no other transition is possible.
 *
 *     absent → creating → open → closing → resting → open …
 *
 * From `open`, `closing` and `resting`, `delete` leads to `deleting` and then to `deleted`, which is final. A
 * conversation exists, and is in `known`, exactly while it is `open`, `closing` or `resting`. What was begun before a
 * conversation was deleted cannot bring it back: only `create` makes a conversation exist.
 */
import { Problem } from '../../contract/problem.ts'
import type { Conversation } from '../conversation.ts'
import type { State } from '../../state/state.ts'

/** `absent`, `resting` and `deleted` conversations have no phase: nothing happens to them. */
export type ConversationPhase =
  /** Open, or being created or opened. There is at most one such object, so that a log has one writer. */
  | { readonly name: 'creating' | 'open'; readonly conversation: Promise<Conversation> }
  | { readonly name: 'closing' | 'deleting'; readonly ended: Promise<unknown> }

/** The conversations that exist. */
export type Existing = {
  readonly has: (id: string) => boolean
  readonly add: (state: State) => void
  readonly delete: (id: string) => void
}

export class Phases {
  readonly #existing: Existing
  readonly #phases = new Map<string, ConversationPhase>()
  /** Conversations that exist, and whose deletion is being recorded. */
  readonly #marking = new Map<string, Promise<void>>()

  constructor(existing: Existing) {
    this.#existing = existing
  }

  /** The number of conversations that have a phase. */
  get size(): number {
    return this.#phases.size
  }

  of(id: string): ConversationPhase | undefined {
    return this.#phases.get(id)
  }

  /** Returns the phase if the conversation is open or being opened. */
  openOf(id: string): (ConversationPhase & { readonly name: 'open' }) | undefined {
    const phase = this.#phases.get(id)
    return phase && isOpen(phase) ? phase : undefined
  }

  /** Resolves to true if the conversation is open, and to false when it is closed. */
  async isHere(id: string): Promise<boolean> {
    const phase = this.#phases.get(id)
    if (phase && 'ended' in phase) await Promise.allSettled([phase.ended])
    return this.openOf(id) !== undefined
  }

  *openIds(): Iterable<string> {
    for (const [id, { name }] of this.#phases) if (name === 'open') yield id
  }

  /** Returns the phases when no deletion is being recorded. Call it when no new one can begin. */
  async settled(): Promise<[string, ConversationPhase][]> {
    await Promise.allSettled(this.#marking.values())
    return this.current()
  }

  current(): [string, ConversationPhase][] {
    return [...this.#phases]
  }

  /** absent → creating → open; absent again if `make` rejects. Throws a `Problem` if the id is in use or was deleted. */
  async create(id: string, make: () => Promise<Conversation>): Promise<Conversation> {
    let current = this.#phases.get(id)
    while (current?.name === 'creating') {
      // Whether that id is in use is only known then.
      await current.conversation.catch(() => undefined)
      current = this.#phases.get(id)
    }
    if (current?.name === 'deleting') throw deletedProblem(id)
    if (current || this.#existing.has(id)) {
      throw new Problem('conversation_exists', `Conversation ${id} already exists.`)
    }
    const phase: ConversationPhase = { name: 'creating', conversation: make() }
    this.#phases.set(id, phase)
    try {
      const conversation = await phase.conversation
      this.#phases.set(id, { name: 'open', conversation: phase.conversation })
      this.#existing.add(conversation.state)
      return conversation
    } catch (error) {
      this.#phases.delete(id)
      throw error
    }
  }

  /**
   * resting → open; resting again if `open` rejects. Also replaces an object that is open and has failed. Call it only
   * for a conversation that exists and is not closing.
   */
  async open(id: string, open: () => Promise<Conversation>): Promise<Conversation> {
    const phase: ConversationPhase = { name: 'open', conversation: open() }
    this.#phases.set(id, phase)
    try {
      return await phase.conversation
    } catch (error) {
      this.#leave(id, phase)
      throw error
    }
  }

  /** open → closing → resting, also if `work` rejects. `open` is its phase now; does nothing if it has another one. */
  async close(id: string, open: ConversationPhase, work: () => Promise<void>): Promise<void> {
    if (this.#phases.get(id) !== open) return
    const ending = work()
    await this.#during(id, { name: 'closing', ended: ending }, ending)
  }

  /**
   * open, closing or resting → deleting → deleted. `mark` records the deletion, and the conversation exists until it
   * resolves; if it rejects, nothing has changed. `remove` receives the object that was open or being opened, after
   * everything else has ended. Returns its outcome. Throws a `Problem` if the conversation is already being deleted.
   */
  async delete(
    id: string,
    mark: () => Promise<void>,
    remove: (opened: Promise<Conversation> | undefined) => Promise<void>,
  ): Promise<{ readonly removed: Promise<void> }> {
    if (!this.#existing.has(id) || this.#marking.has(id)) throw deletedProblem(id)
    try {
      const marking = mark()
      this.#marking.set(id, marking)
      await marking
      this.#existing.delete(id)
    } finally {
      this.#marking.delete(id)
    }
    const before = this.#phases.get(id)
    const work = async () => {
      if (before?.name === 'closing') await Promise.allSettled([before.ended])
      await remove(before && isOpen(before) ? before.conversation : undefined)
    }
    const ending = work()
    return { removed: this.#during(id, { name: 'deleting', ended: ending }, ending) }
  }

  async #during(id: string, phase: ConversationPhase, work: Promise<void>): Promise<void> {
    this.#phases.set(id, phase)
    try {
      await work
    } finally {
      this.#leave(id, phase)
    }
  }

  /** Another transition may have followed already. */
  #leave(id: string, phase: ConversationPhase): void {
    if (this.#phases.get(id) === phase) this.#phases.delete(id)
  }
}

export const deletedProblem = (id: string) =>
  new Problem('conversation_deleted', `Conversation ${id} has been deleted.`, { details: { conversation_id: id } })

export const isNotFound = (error: unknown): boolean =>
  error instanceof Problem && error.code === 'conversation_not_found'

/** The conversation is known, but its file was removed. */
export const logIsGone = (cause: unknown) =>
  new Problem(
    'conversation_damaged',
    'The event log of this conversation is missing. Restore events.jsonl from a backup, or delete the conversation.',
    { cause },
  )

const isOpen = (phase: ConversationPhase): phase is ConversationPhase & { readonly name: 'open' } =>
  phase.name === 'open'
