/**
 * Decides which agents of a conversation only wait for answers to the forms of their calls, and gives their slots back until
 * one is answered. An agent only waits if each of its calls does: for an answer, or for a subagent that only waits itself.
 * The calls stay open, and take the slot again before they continue.
 */
import type { State } from '../../state/state-shape.ts'
import { callerOf, findSubagent, isBlocked } from '../../state/subagents.ts'
import type { WorkingSlot } from './working-slot.ts'
import { giveBack, takeAgain } from './working-slot.ts'

export type SlotRestsDeps = {
  readonly state: { readonly current: Pick<State, 'openCalls' | 'requests' | 'subagents'> }
  /** The slot of the agent that works for this call, or of the main agent. Undefined if it does not work now. */
  readonly slotOf: (toolUseId: string | undefined) => WorkingSlot | undefined
}

export class SlotRests {
  readonly #deps: SlotRestsDeps
  /** The calls that wait for an answer. */
  readonly #waitingCalls = new Set<string>()

  constructor(deps: SlotRestsDeps) {
    this.#deps = deps
  }

  /** The call waits for an answer from now on. */
  begin(toolUseId: string): void {
    this.#waitingCalls.add(toolUseId)
    this.check()
  }

  /** Resolves when the call may continue: its agent has a slot, or works no more. Never rejects. */
  async end(toolUseId: string): Promise<void> {
    if (!this.#waitingCalls.delete(toolUseId)) return
    const slot = this.#deps.slotOf(callerOf(this.#deps.state.current, toolUseId)?.toolUseId)
    if (slot) await takeAgain(slot)
  }

  /** Call it when an agent begins to work, and after each change of the state. */
  check(): void {
    if (this.#waitingCalls.size === 0) return
    for (const agent of [undefined, ...this.#deps.state.current.subagents.map(({ toolUseId }) => toolUseId)]) {
      const slot = this.#deps.slotOf(agent)
      if (slot && !slot.isGivenBack && this.#onlyWaits(agent)) giveBack(slot)
    }
  }

  #onlyWaits(agent: string | undefined): boolean {
    const { current } = this.#deps.state
    const slot = this.#deps.slotOf(agent)
    if (!slot || slot.isOver) return false
    const { openCalls } = agent === undefined ? current : (findSubagent(current, agent)?.agent ?? { openCalls: [] })
    const begunCalls = openCalls.filter(({ toolUseId }) => slot.calls.hasBegun(toolUseId))
    return begunCalls.length > 0 && begunCalls.every(({ toolUseId }) => this.#waits(toolUseId))
  }

  #waits(toolUseId: string): boolean {
    if (this.#waitingCalls.has(toolUseId)) return true
    const { current } = this.#deps.state
    const subagent = findSubagent(current, toolUseId)
    if (!subagent) return false
    // One that has a slot may work itself while all of its subagents are blocked: its agent lends it that slot.
    return this.#deps.slotOf(toolUseId) ? this.#onlyWaits(toolUseId) : isBlocked(current, subagent)
  }
}
