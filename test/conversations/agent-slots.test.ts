import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { AgentSlots } from '../../src/conversations/subagents/agent-slots.ts'
import { lendSlot, SubagentSlots } from '../../src/conversations/subagents/agent-slots.ts'
import { Queue } from '../../src/lib/queue.ts'
import { EMPTY_STATE } from '../../src/state/state.ts'

const settingsFor = (max_concurrent: number) => ({ ...EMPTY_STATE.settings, subagent_limits: { max_concurrent } })

/** An agent, as the list of its subagents, which begin together. */
type Agent = readonly Agent[]

const TREE: Agent = [
  [[[], []], [], []],
  [[], [[], [[], []]]],
]

/** Counts the agents that work themselves, and those that have ended. */
class Work {
  working = 0
  most = 0
  ended = 0

  async in(slots: AgentSlots, subagents: Agent, signal = new AbortController().signal): Promise<void> {
    const slot = slots.take({ signal })
    if (await slot.entry) await this.by(slots, subagents)
    slot.leave()
  }

  /** The agent works, waits for its subagents, and works on. */
  async by(slots: AgentSlots, subagents: Agent): Promise<void> {
    await this.#step()
    const own = lendSlot(slots)
    await Promise.all(subagents.map((each) => this.in(own, each)))
    await this.#step()
    this.ended++
  }

  async #step(): Promise<void> {
    this.most = Math.max(this.most, ++this.working)
    await yieldToLoop()
    this.working--
  }
}

const LIMITS = [1, 2, 3].flatMap((ofServer) => [1, 2, 3].map((ofConversation) => ({ ofServer, ofConversation })))

describe.each(LIMITS)('with $ofServer slots of the server and $ofConversation of the conversation', (limits) => {
  const least = Math.min(limits.ofServer, limits.ofConversation)

  test('all agents of a run end, no more than these work at the same time, and all slots are free again', async () => {
    const server = new Queue({ limit: limits.ofServer })
    const slots = new SubagentSlots(settingsFor(limits.ofConversation), server).ofRun()
    const work = new Work()
    const run = server.take()
    await Promise.all(TREE.map((each) => work.in(slots, each)))
    expect(work).toMatchObject({ working: 0, ended: 13, most: least })
    expect(server).toMatchObject({ active: 1, waiting: 0 })
    run.leave()
    expect(server.active).toBe(0)
  })

  test('agents in the background take slots of the server, and lend them', async () => {
    const server = new Queue({ limit: limits.ofServer })
    const slots = new SubagentSlots(settingsFor(limits.ofConversation), server).inBackground()
    const work = new Work()
    await Promise.all(TREE.map((each) => work.in(slots, each)))
    expect(work).toMatchObject({ working: 0, ended: 13, most: least })
    expect(server).toMatchObject({ active: 0, waiting: 0 })
  })
})

test('an agent that is stopped while it waits for one slot gives back the other one', async () => {
  const server = new Queue({ limit: 1 })
  const all = new SubagentSlots(settingsFor(1), server)
  const run = server.take()
  const work = new Work()
  const stop = new AbortController()
  const stopped = work.in(all.inBackground(), [], stop.signal)
  const next = work.in(all.inBackground(), [])
  await yieldToLoop()
  expect(server.waiting).toBe(1)
  stop.abort()
  await stopped
  expect(work.ended).toBe(0)
  run.leave()
  await next
  expect(work.ended).toBe(1)
  expect(server).toMatchObject({ active: 0, waiting: 0 })
})

test('a second subagent of an agent gets the next slot that is free', async () => {
  const server = new Queue({ limit: 2 })
  const slots = lendSlot(server)
  const run = server.take()
  const other = server.take()
  const signal = new AbortController().signal
  const [first, second] = [slots.take({ signal }), slots.take({ signal })]
  expect([first.isFree, second.isFree]).toEqual([true, false])
  other.leave()
  expect(await second.entry).toBe(true)
  second.leave()
  first.leave()
  run.leave()
  expect(server).toMatchObject({ active: 0, waiting: 0 })
})
