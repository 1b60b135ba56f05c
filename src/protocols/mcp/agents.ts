/** What the tools need of the agents that they start and find. Each transport has its own: a client of a server, or the server itself. */
import type { Event, EventOf } from '../../contract/events/event.ts'
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

/** What ends a run, or says that it waits. */
export type EndEvent = EventOf<'StatusUpdate' | 'Result' | 'ErrorEvent'>

export type FoundAgent = {
  readonly id: string
  /** Returns what it does now, and the end of its last run. */
  readonly look: () => Promise<AgentLook>
  /** Follows the events after a seq. Ends with the signal, or with an error of it. */
  readonly events: (after: number, signal: AbortSignal) => AsyncIterable<Event>
  /** Reads the stored ends after a seq, in order. */
  readonly ends: (after: number) => AsyncIterable<EndEvent>
  /** Returns the stored event with this seq, or undefined. */
  readonly eventAt: (seq: number) => Promise<Event | undefined>
  readonly send: (prompt: string) => Promise<unknown>
  readonly answer: (requestId: string, answer: AnswerRequest) => Promise<unknown>
  readonly interrupt: () => Promise<unknown>
}
