/** What the tools need of the agents that they start and find. Each transport has its own: a client of a server, or the server itself. */
import type { Event } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import type { AnswerRequest, OpenRequest } from '../../contract/request.ts'
import type { RunOutcome } from '../../contract/run.ts'

export type AgentStart = {
  readonly prompt: string
  readonly workdir: string | undefined
  readonly profile: string | undefined
}

/** Both throw what the key may not do, and what is wrong. */
export type AgentSource = {
  /** Makes a conversation, and starts its agent. */
  readonly start: (start: AgentStart) => Promise<FoundAgent>
  readonly find: (conversationId: string) => Promise<FoundAgent>
}

export type AgentLook = Pick<RunOutcome, 'result' | 'error'> & {
  readonly status: Status
  readonly lastSeq: number
  readonly requests: readonly OpenRequest[]
}

export type FoundAgent = {
  readonly id: string
  /** Returns what it does now, and the end of its last run. */
  readonly look: () => Promise<AgentLook>
  /** Follows the events after a seq. Ends with the signal, or with an error of it. */
  readonly events: (after: number, signal: AbortSignal) => AsyncIterable<Event>
  readonly send: (prompt: string) => Promise<unknown>
  readonly answer: (requestId: string, answer: AnswerRequest) => Promise<unknown>
  readonly interrupt: () => Promise<unknown>
}
