/**
 * The slot of one agent that works: of a run, or of a subagent. While its agent only waits for answers from outside, others
 * have the slot.
 */
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { Queue, SlotRequest } from '../../lib/queue.ts'

// A plain object and not a class: each run has one, and most runs never give it back.
export type WorkingSlot = {
  /** The queue that each slot comes from. */
  readonly slots: Pick<Queue, 'take'>
  /** Aborted when the agent works no more: then it takes no slot again. */
  readonly signal: AbortSignal
  /** The calls of the agent. */
  readonly calls: Pick<ToolCalls, 'hasBegun'>
  /** The slot that is lent to this agent, of the agent that waits for it. */
  readonly above?: WorkingSlot | undefined
  /** The request for the slot that the agent has now, waits for, or has given back. */
  request: SlotRequest
  isGivenBack?: boolean
  /** Set before the last `request.leave()`. */
  isOver?: boolean
}

export function giveBack(slot: WorkingSlot): void {
  slot.isGivenBack = true
  slot.request.leave()
}

/**
 * Resolves when the agent has its slot, after those above it, which lend it; immediately if it has not given it back.
 * Resolves without a slot when the signal is aborted. Never rejects.
 */
export async function takeAgain(slot: WorkingSlot): Promise<void> {
  if (slot.above) await takeAgain(slot.above)
  if (slot.isGivenBack && !slot.isOver) {
    slot.isGivenBack = false
    slot.request = slot.slots.take({ signal: slot.signal })
  }
  await slot.request.entry
}
