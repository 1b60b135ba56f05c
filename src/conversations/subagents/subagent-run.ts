/** One open subagent in this process: its tools, its hooks and its history, for the agent loop. */
import type { LoopEnd, LoopWait } from '../../agent/loop-end.ts'
import { runAgent } from '../../agent/loop.ts'
import type { AgentContext, Output } from '../../agent/loop-context.ts'
import type { Event } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import type { AgentParts } from '../agents/agent-context.ts'
import { createAgentContext } from '../agents/agent-context.ts'
import { LiveHistory } from '../agents/live-history.ts'
import type { Subagent } from '../../state/state-shape.ts'

/** What is built for one subagent. */
export type SubagentParts = AgentParts &
  Output & {
    readonly log: Pick<EventLog, 'read' | 'head'>
    /** Ends its shells. */
    readonly close: () => Promise<void>
  }

export class SubagentRun {
  readonly toolUseId: string
  readonly callerId: string | undefined
  readonly parts: SubagentParts
  readonly #subagent: Subagent
  readonly #history = new LiveHistory()
  #context: Promise<AgentContext> | undefined

  constructor(subagent: Subagent, parts: SubagentParts) {
    this.toolUseId = subagent.toolUseId
    this.callerId = subagent.callerId
    this.#subagent = subagent
    this.parts = parts
  }

  /** Receives each durable event of the conversation. */
  take(event: Event): void {
    this.#history.take(event)
  }

  /** Runs the agent loop until the subagent has ended, waits or was paused. Returns and rejects as `runAgent` does. */
  async loop(signal: AbortSignal): Promise<LoopEnd | LoopWait | undefined> {
    const { toolCalls, emit, publish } = this.parts
    if (toolCalls.prepare) await toolCalls.prepare(signal)
    this.#context ??= this.#createContext(signal)
    return await runAgent(await this.#context, { emit, publish }, signal)
  }

  /** It does not work now: nothing is kept that can be read from the log. */
  rest(): void {
    this.#context = undefined
  }

  /** The calls that have begun: their tool writes the result. */
  begunCalls(): readonly string[] {
    const { state, toolCalls } = this.parts
    return state.current.openCalls.map(({ toolUseId }) => toolUseId).filter((id) => toolCalls.hasBegun(id))
  }

  async #createContext(signal: AbortSignal): Promise<AgentContext> {
    const { log, state, toolCalls } = this.parts
    const render = (name: string, output: unknown) => toolCalls.render(name, output)
    const { agentId, firstSeq } = this.#subagent
    const { forgotten, rewound } = state.current
    const history = await this.#history.load(log, render, signal, { agentId, firstSeq, forgotten, rewound })
    const runId = state.current.run?.id ?? ''
    return createAgentContext(this.parts, { runId, history, onRequest: () => state.current.lastSeq })
  }
}
