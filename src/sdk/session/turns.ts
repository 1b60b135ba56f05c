/** Knows by the events whether the messages of a query have been answered. */
import type { Event } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'

export class Turns {
  status: Status
  /** Seq of the newest event. */
  seq: number
  #startedAt = 0
  #endedAt = 0
  #lastMessage = 0
  #subagentEndedAt = 0
  #settlesAt = 0
  #hasChanged = false
  #isCutOff = false

  constructor({ status, seq }: { readonly status: Status; readonly seq: number }) {
    this.status = status
    this.seq = seq
  }

  take(event: Event): void {
    this.seq = event.seq
    // An active run reads it, or one begins.
    if (event.type === 'Result' && event.background_agent_id !== undefined) this.#subagentEndedAt = event.seq
    if (event.type !== 'StatusUpdate') return
    this.#hasChanged = true
    if (event.status === 'running' && this.status !== 'running') this.#startedAt = event.seq
    if (event.status !== 'running') this.#endedAt = event.seq
    this.#isCutOff = event.status === 'paused' && event.reason === 'server_closing'
    this.status = event.status
  }

  /** A message was stored, and asks for a run. */
  posted(seq: number): void {
    this.#lastMessage = Math.max(this.#lastMessage, seq)
  }

  /** Nothing is settled before this event is read. */
  readTo(seq: number): void {
    this.#settlesAt = seq
  }

  /** True if a run has begun or ended since the beginning. */
  get hasChanged(): boolean {
    return this.#hasChanged
  }

  get isRunning(): boolean {
    return this.status === 'running'
  }

  /** True if the server has ended the run because it stops. */
  get isCutOff(): boolean {
    return this.#isCutOff
  }

  /** True if no run is active, and the last message had one. */
  get isSettled(): boolean {
    if (this.seq < this.#settlesAt) return false
    return !this.isRunning && (this.#lastMessage === 0 || this.#endedAt > this.#lastMessage)
  }

  /** True if the last message, or end of a subagent, came after the last run began, which may have ended without reading it. */
  get mayRunAgain(): boolean {
    return Math.max(this.#lastMessage, this.#subagentEndedAt) > this.#startedAt
  }
}
