/**
 * Random trees of agents and their slots: subagents in the foreground and in the background, which wait for forms and for
 * decisions, and end by themselves, by a failure or because they are stopped. What gives and takes the slots is the real code;
 * the agents are this file.
 */
import { setImmediate as yieldToLoop } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { AgentSlots } from '../../src/conversations/subagents/agent-slots.ts'
import { lendSlot, SubagentSlots } from '../../src/conversations/subagents/agent-slots.ts'
import { SlotRests } from '../../src/conversations/agents/slot-rests.ts'
import type { WorkingSlot } from '../../src/conversations/agents/working-slot.ts'
import { takeAgain } from '../../src/conversations/agents/working-slot.ts'
import { Queue } from '../../src/lib/queue.ts'
import { EMPTY_STATE } from '../../src/state/state.ts'
import { createRandom, type Random } from '../support/random.ts'

/** Trees for each pair of limits. */
const TREES = 10
/** Turns of the event loop after which agents that have not ended never will. */
const MOST_TURNS = 3000

type Plan = {
  /** Calls of its own: each holds a form open for so many turns. */
  readonly forms: readonly number[]
  /** Turns in which it waits for a decision, without a slot, before it continues. */
  readonly decision: number
  readonly foreground: readonly Plan[]
  readonly background: readonly Plan[]
  readonly isFailing: boolean
  /** For the agents in the background: after so many turns they are stopped. */
  readonly stopAfter: number | undefined
}

type Within = { readonly signal: AbortSignal; readonly slots: AgentSlots; readonly own?: WorkingSlot }

type Kind = 'run' | 'foreground' | 'background'

describe.each([1, 2, 3, 4])('with %i slots of the server', (ofServer) => {
  test.each([1, 2, 3, 4])(
    'with %i of the conversation, every agent ends, no more work at a time, and all slots are free again',
    async (ofConversation) => {
      for (let seed = 1; seed <= TREES; seed++) {
        const random = createRandom(seed * 100 + ofServer * 10 + ofConversation)
        const tree = new Tree({ ofServer, ofConversation })
        await tree.grow(randomPlan(random, 0), random)
        expect(tree.report(), `seed ${seed}`).toEqual({ faults: [], open: 0, active: 0, waiting: 0, free: true })
      }
    },
  )
})

/** A conversation, of which the main agent has the plan. */
class Tree {
  readonly #faults: string[] = []
  readonly #limits: { readonly ofServer: number; readonly ofConversation: number }
  readonly #server: Queue
  readonly #all: SubagentSlots
  readonly #slots = new Map<string | undefined, WorkingSlot>()
  readonly #state = { openCalls: [] as Call[], requests: [], subagents: [] as Agent[] }
  readonly #rests: SlotRests
  readonly #inBackground: Promise<void>[] = []
  readonly #working: Record<Kind, number> = { run: 0, foreground: 0, background: 0 }
  #open = 0
  #count = 0

  constructor(limits: { readonly ofServer: number; readonly ofConversation: number }) {
    this.#limits = limits
    this.#server = new Queue({ limit: limits.ofServer })
    const subagent_limits = { max_concurrent: limits.ofConversation }
    this.#all = new SubagentSlots({ ...EMPTY_STATE.settings, subagent_limits }, this.#server)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that the rests read
    const state = { current: this.#state } as unknown as ConstructorParameters<typeof SlotRests>[0]['state']
    this.#rests = new SlotRests({ state, slotOf: (call) => this.#slots.get(call) })
  }

  /** Resolves when all agents have ended, or have had their time. */
  async grow(plan: Plan, random: Random): Promise<void> {
    const stop = new AbortController()
    const stopAfter = random.below(3) === 0 ? random.below(40) : undefined
    const run = { isOver: false }
    const ended = this.#run(plan, stop.signal).finally(() => (run.isOver = true))
    for (let turn = 0; turn < MOST_TURNS && !run.isOver; turn++) {
      if (turn === stopAfter) stop.abort()
      await yieldToLoop()
    }
    if (run.isOver) await ended
    else this.#faults.push(`${this.#open} agents never end`)
  }

  report() {
    const rest = [this.#all.ofRun(), this.#all.inBackground()].map((slots) => slots.take({}))
    const free = rest.every(({ isFree }) => isFree)
    for (const request of rest) request.leave()
    const { active, waiting } = this.#server
    return { faults: this.#faults, open: this.#open, active, waiting, free }
  }

  async #run(plan: Plan, signal: AbortSignal): Promise<void> {
    const slot = this.#slot({ signal, slots: this.#server })
    try {
      if (!(await slot.request.entry)) return
      this.#slots.set(undefined, slot)
      this.#rests.check()
      await this.#live(plan, 'run', { id: undefined, calls: this.#state.openCalls }, slot, {
        signal,
        own: slot,
        slots: this.#all.ofRun(),
      }).catch(() => {})
    } finally {
      this.#leave(undefined, slot)
    }
    // They work on when the run has ended.
    await Promise.all(this.#inBackground)
  }

  #begin(plan: Plan, kind: Kind, callerId: string | undefined, within: Within): Promise<void> {
    const id = `agent-${this.#count++}`
    this.#open++
    const agent: Agent = { toolUseId: id, callerId, isBackground: kind === 'background', agent: { openCalls: [] } }
    this.#state.subagents.push(agent)
    return this.#follow(plan, kind, agent, within).finally(() => {
      this.#open--
      this.#state.subagents.splice(this.#state.subagents.indexOf(agent), 1)
      this.#rests.check()
    })
  }

  /** As `Subagents` does it: a decision ends the work, and the answer begins another one. */
  async #follow(plan: Plan, kind: Kind, agent: Agent, within: Within): Promise<void> {
    const { signal, own: above } = within
    const { toolUseId: id } = agent
    for (const isDecided of plan.decision > 0 ? [false, true] : [true]) {
      if (above) await takeAgain(above)
      const slot = this.#slot(within)
      try {
        if (!(await slot.request.entry)) return
        this.#slots.set(id, slot)
        this.#rests.check()
        const calls = agent.agent.openCalls
        const inside = { signal, own: slot, slots: lendSlot(within.slots) }
        if (isDecided) return await this.#live(plan, kind, { id, calls }, slot, inside)
        await this.#step(kind, slot)
        agent.agent.request = { calls: [{}] }
      } catch {
        return
      } finally {
        this.#leave(id, slot)
        this.#rests.check()
      }
      await turns(plan.decision, signal)
      delete agent.agent.request
      if (signal.aborted) return
    }
  }

  /** Works, makes all calls at the same time, and works again. */
  async #live(
    plan: Plan,
    kind: Kind,
    { id, calls }: { readonly id: string | undefined; readonly calls: Call[] },
    slot: WorkingSlot,
    inside: Within,
  ): Promise<void> {
    await this.#step(kind, slot)
    for (const each of plan.background) this.#startInBackground(each)
    const form = (length: number) => this.#call(calls, (call) => this.#fill(call, length, slot))
    const foreground = kind === 'background' ? 'background' : 'foreground'
    await Promise.all([
      ...plan.forms.map(form),
      ...plan.foreground.map((each) =>
        this.#call(
          calls,
          () => this.#begin(each, foreground, id, inside),
          () => `agent-${this.#count}`,
        ),
      ),
    ])
    await this.#step(kind, slot)
    if (plan.isFailing) throw new Error('failed')
  }

  #startInBackground(plan: Plan): void {
    const stop = new AbortController()
    if (plan.stopAfter !== undefined) void turns(plan.stopAfter, stop.signal).then(() => stop.abort())
    this.#inBackground.push(
      this.#begin(plan, 'background', undefined, { signal: stop.signal, slots: this.#all.inBackground() }),
    )
  }

  async #call(calls: Call[], make: (call: string) => Promise<void>, idOf = () => `call-${this.#count++}`) {
    const call = { toolUseId: idOf() }
    calls.push(call)
    try {
      await make(call.toolUseId)
    } finally {
      calls.splice(calls.indexOf(call), 1)
      this.#rests.check()
    }
  }

  /** The call works on after the answer, also while subagents have a slot that its agent lends. */
  async #fill(call: string, length: number, slot: WorkingSlot): Promise<void> {
    this.#rests.begin(call)
    await turns(length, slot.signal)
    await this.#rests.end(call)
    for (let turn = 0; turn < 4 && !slot.signal.aborted; turn++) {
      this.#checkAbove(slot)
      await yieldToLoop()
    }
  }

  #checkAbove(slot: WorkingSlot): void {
    for (let each: WorkingSlot | undefined = slot; each; each = each.above)
      if (each.isGivenBack)
        this.#faults.push(`an agent works while ${each === slot ? 'its' : 'a lent'} slot is given back`)
  }

  async #step(kind: Kind, slot: WorkingSlot): Promise<void> {
    if (slot.signal.aborted) throw new Error('stopped')
    this.#checkAbove(slot)
    this.#working[kind]++
    const { run, foreground, background } = this.#working
    const { ofServer, ofConversation } = this.#limits
    if (run + foreground + background > ofServer) this.#faults.push('more agents work than the server allows')
    if (foreground > ofConversation) this.#faults.push('more subagents work than the conversation allows')
    if (background > ofConversation) this.#faults.push('more work in the background than the conversation allows')
    await yieldToLoop()
    this.#working[kind]--
  }

  #slot({ signal, slots, own: above }: Within): WorkingSlot {
    return { slots, signal, calls: { hasBegun: () => true }, above, request: slots.take({ signal }) }
  }

  #leave(id: string | undefined, slot: WorkingSlot): void {
    this.#slots.delete(id)
    slot.isOver = true
    slot.request.leave()
  }
}

type Call = { readonly toolUseId: string }

type Agent = {
  readonly toolUseId: string
  readonly callerId: string | undefined
  readonly isBackground: boolean
  readonly agent: { readonly openCalls: Call[]; request?: { readonly calls: readonly object[] } }
}

/** Resolves after so many turns of the event loop, or when the signal is aborted. */
async function turns(count: number, signal: AbortSignal): Promise<void> {
  for (let turn = 0; turn < count && !signal.aborted; turn++) await yieldToLoop()
}

function randomPlan(random: Random, depth: number): Plan {
  const subagents = (most: number) =>
    depth === 3 ? [] : Array.from({ length: random.below(most + 1) }, () => randomPlan(random, depth + 1))
  return {
    forms: Array.from({ length: random.below(3) }, () => 1 + random.below(20)),
    decision: random.below(3) === 0 ? 1 + random.below(20) : 0,
    foreground: subagents(3),
    // Only the main agent has subagents in the background.
    background: depth === 0 ? subagents(3) : [],
    isFailing: random.below(6) === 0,
    stopAfter: random.below(4) === 0 ? random.below(30) : undefined,
  }
}
