/** One prompt of an editor: waits for the end of its run, and says why it has ended. */
import type { PromptResponse, StopReason } from '@agentclientprotocol/sdk'
import { RequestError } from '@agentclientprotocol/sdk'
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { Status } from '../../contract/events/status.ts'
import { describeEvent } from '../../contract/events/describe-event.ts'
import { INTERNAL_ERROR } from './protocol-errors.ts'

type Result = EventOf<'Result'>

/** How the run continues: undefined if it does not. Called with the seq of the event that has ended it. */
type Continue = (after: number) => Promise<string | undefined> | undefined

type Options = {
  /** Whether the client shows questions as forms. Otherwise the next prompt is the answer. */
  readonly canAnswer: boolean
  readonly onCutOff: Continue
}

const GOES_ON: ReadonlySet<Status> = new Set([
  'running',
  'waiting_for_confirmation',
  'waiting_for_input',
  'waiting_for_client',
])

/** The process that ran the agent has ended. */
export const ENDS_OF_SERVERS: ReadonlySet<string> = new Set(['server_closing', 'server_restart', 'owner_lost'])

/** Why a prompt ends; undefined: with an error. `cancelled` is what a person has chosen, and never what a new message does. */
export const STOP_REASONS: Readonly<Record<Result['stop_reason'], StopReason | undefined>> = {
  completed: 'end_turn',
  finished: 'end_turn',
  hook: 'end_turn',
  max_steps: 'max_turn_requests',
  iteration_limit: 'max_turn_requests',
  time_limit: 'max_turn_requests',
  token_limit: 'max_tokens',
  content_filter: 'refusal',
  paused: 'cancelled',
  rejected: 'cancelled',
  superseded: 'end_turn',
  cancelled: 'cancelled',
  budget_limit: undefined,
  stuck: undefined,
  error: undefined,
  server_restart: undefined,
  owner_lost: undefined,
}

export class PromptTurn {
  isCancelled = false
  readonly ended: Promise<PromptResponse>
  readonly #options: Options
  readonly #settle: PromiseWithResolvers<PromptResponse>
  #begun: { readonly after: number; runId: string | undefined } | undefined
  /** The events that arrive before the answer to the message. */
  #early: Event[] = []
  #result: Result | undefined
  #isSuperseded = false
  #error: EventOf<'ErrorEvent'> | undefined

  constructor(options: Options) {
    this.#options = options
    this.#settle = Promise.withResolvers()
    this.ended = this.#settle.promise
    this.ended.catch(() => {}) // it is reported to who waits for it
  }

  /** `after`: the seq of the message. `runId`: that of the run that reads it, if it is known. */
  begin(after: number, runId: string | undefined): void {
    this.#begun = { after, runId }
    for (const event of this.#early.splice(0)) this.take(event)
  }

  fail(error: unknown): void {
    this.#settle.reject(error)
  }

  take(event: Event): void {
    if (!this.#begun) return void this.#early.push(event)
    const { after, runId } = this.#begun
    if (event.seq <= after) return
    const isOfRun = 'run_id' in event && (runId === undefined || event.run_id === runId)
    // A message that asks for no run leaves the conversation at rest, which is of no run.
    if (!isOfRun && !(this.#isSuperseded && event.type === 'StatusUpdate')) return
    const isQuestion = event.type === 'RequestOpened' && event.kind === 'question'
    if (isQuestion && !this.#options.canAnswer) return this.#settle.resolve({ stopReason: 'end_turn' })
    // A subagent has a result, too.
    if ('parent_tool_use_id' in event && event.parent_tool_use_id !== undefined) return
    if (event.type === 'Result') this.#result = event
    if (event.type === 'ErrorEvent') this.#error = event
    if (event.type === 'StatusUpdate') this.#takeStatus(event)
    if (event.type === 'Result' && event.stop_reason === 'superseded') this.#follow(event.seq)
  }

  /** A message of another client has closed what waited: the prompt ends with the run that reads it. */
  #follow(after: number): void {
    if (this.isCancelled) return this.#end()
    this.#begun = { after, runId: undefined }
    this.#isSuperseded = true
  }

  #takeStatus({ status, reason, seq }: EventOf<'StatusUpdate'>): void {
    if (GOES_ON.has(status)) return
    const isCutOff = status === 'paused' && ENDS_OF_SERVERS.has(reason) && !this.isCancelled
    const continuation = isCutOff ? this.#options.onCutOff(seq) : undefined
    if (!continuation) return this.#end()
    this.#begun = undefined
    continuation.then(
      (runId) => this.begin(seq, runId),
      (error) => this.fail(error),
    )
  }

  #end(): void {
    const stopReason = this.isCancelled ? 'cancelled' : this.#result && STOP_REASONS[this.#result.stop_reason]
    if (stopReason) return this.#settle.resolve({ stopReason })
    const why = this.#error?.message ?? (this.#result ? describeEvent(this.#result) : 'the run ended without a result')
    this.#settle.reject(new RequestError(INTERNAL_ERROR, why))
  }
}
