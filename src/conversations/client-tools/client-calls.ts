/** The calls of client tools as clients see them: which wait, and how a client sends the result of one. */
import type { PendingToolCalls, PostToolResult, ToolResultAccepted } from '../../contract/client-tools/client-tool.ts'
import type { EventOf } from '../../contract/events/event.ts'
import { Problem } from '../../contract/problem.ts'
import { redactOutput } from '../../agent/redact-output.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import type { LiveState } from '../live-state.ts'
import { outcomeOf } from '../../state/client-outcome.ts'
import type { ToolResultIntent } from '../../state/client-tool-intents.ts'
import { toolCallNotFound } from '../../state/client-tool-intents.ts'
import type { WaitingCalls } from './waiting-calls.ts'

/** What client tools need from the conversation's actor. */
export type ClientCallActor = {
  /** Queues the work and runs it in turn. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Decides and stores the events; call it only in turn. */
  apply(intent: ToolResultIntent): Promise<unknown>
}

export type ClientCallsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly waiting: WaitingCalls
  readonly redact: (text: string) => string
  readonly actor: ClientCallActor
}

const TYPES = new Set(['ClientToolCall', 'ClientToolResult'])
const PAGE = 1000

export class ClientCalls {
  readonly #deps: ClientCallsDeps

  constructor(deps: ClientCallsDeps) {
    this.#deps = deps
  }

  pending(): PendingToolCalls {
    return { items: this.#deps.waiting.views() }
  }

  /**
   * Stores the result of a call. The first one counts; the same one again changes nothing, even long afterwards. Throws
   * a `Problem` for an unknown call, and for one that has ended.
   */
  async answer(toolUseId: string, { output: given, is_error: isError }: PostToolResult): Promise<ToolResultAccepted> {
    const { waiting, state, redact, actor } = this.#deps
    const output = redactOutput(given, redact)
    const isStored = await actor.inTurn(async () => {
      const call = waiting.get(toolUseId)
      await call?.answer(async () => {
        await actor.apply({ kind: 'tool_result', toolUseId, output, isError })
        return outcomeOf({ output, isError })
      })
      return call !== undefined
    })
    // This runs out of turn: it only reads, possibly far back in the log, and results do not change.
    if (!isStored) await this.#requireSame(toolUseId, { output, isError })
    return { status: state.current.status, pending: waiting.views().length }
  }

  async #requireSame(toolUseId: string, given: { readonly output: unknown; readonly isError: boolean }): Promise<void> {
    const { isKnown, stored } = await this.#find(toolUseId)
    if (!isKnown) throw toolCallNotFound()
    if (!stored) throw toolCallEnded()
    const { output, is_error: isError } = stored
    if (canonicalJson({ output, isError }) !== canonicalJson(given)) throw answeredBefore()
  }

  /** Reads backwards from the newest event to the call. */
  async #find(toolUseId: string): Promise<{ isKnown: boolean; stored?: EventOf<'ClientToolResult'> }> {
    for await (const { events } of readPages(this.#deps.log, { types: TYPES, order: 'desc', limit: PAGE })) {
      for (const { event } of events) {
        if (event.type === 'ClientToolResult' && event.tool_use_id === toolUseId)
          return { isKnown: true, stored: event }
        if (event.type === 'ClientToolCall' && event.tool_use_id === toolUseId) return { isKnown: true }
      }
    }
    return { isKnown: false }
  }
}

const answeredBefore = () =>
  new Problem('already_answered', 'This call was answered before; the first result counts. Send a message instead.')

const toolCallEnded = () =>
  new Problem(
    'tool_call_ended',
    'This call has ended without a result of a client: by its deadline, an interruption, or a restart of the server. Send a message instead.',
  )
