/**
 * A call gets one result. Two write results: its tool, at any time, and the actor, in turn, when it decides that a call ends
 * without its tool. The only file that keeps one of them from storing what the other has stored, or is storing.
 */
import type { EventDraft } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import type { LiveState } from './live-state.ts'

type Drafts = readonly EventDraft[]

export class CallResults {
  readonly #state: Pick<LiveState, 'current'>
  /** What is being stored, by the id of the call. Rejects never. */
  readonly #storing = new Map<string, Promise<unknown>>()

  constructor(state: Pick<LiveState, 'current'>) {
    this.#state = state
  }

  /**
   * Lets tools append the result of a call, which is the last draft, and what belongs to it. Appends nothing if the
   * call has its result already. Not async: an append begins within this very call, if it can.
   */
  store(drafts: Drafts, append: (drafts: Drafts) => Promise<unknown>): Promise<unknown> {
    const others = this.#beingStored(drafts)
    if (others.length > 0) return Promise.all(others).then(() => this.store(drafts, append))
    const own = drafts.at(-1)
    if (own?.type === 'ToolResult' && !this.#isOpen(own.tool_use_id)) return Promise.resolve()
    return this.#hold(drafts, append(drafts))
  }

  /**
   * Lets the actor, in turn, decide and store. What tools are storing at that time is in the state first; what they
   * store afterwards waits until `store` is over. Throws the `Problem` of a refusal.
   */
  async decide<T>(decide: () => Drafts | Problem, store: (drafts: Drafts) => Promise<T>): Promise<T> {
    for (;;) {
      const drafts = decide()
      if (drafts instanceof Problem) throw drafts
      const others = this.#beingStored(drafts)
      if (others.length === 0) return await this.#hold(drafts, store(drafts))
      await Promise.all(others)
    }
  }

  #beingStored(drafts: Drafts): readonly Promise<unknown>[] {
    if (this.#storing.size === 0) return []
    return resultsIn(drafts).flatMap((id) => this.#storing.get(id) ?? [])
  }

  #hold<T>(drafts: Drafts, storing: Promise<T>): Promise<T> {
    const ids = resultsIn(drafts)
    if (ids.length === 0) return storing
    const release = () => ids.forEach((id) => this.#storing.delete(id))
    const over = storing.then(release, release)
    for (const id of ids) this.#storing.set(id, over)
    return storing
  }

  #isOpen(toolUseId: string): boolean {
    const { current } = this.#state
    const agents = [current, ...current.subagents.map(({ agent }) => agent)]
    return agents.some(({ openCalls }) => openCalls.some((call) => call.toolUseId === toolUseId))
  }
}

function resultsIn(drafts: Drafts): readonly string[] {
  const ids: string[] = []
  for (const draft of drafts) if (draft.type === 'ToolResult') ids.push(draft.tool_use_id)
  return ids
}
