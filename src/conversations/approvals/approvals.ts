/** The approvals of one conversation: which tool calls wait for a user, and how the user decides them. */
import type { PendingPermissions, PermissionAnswer, ToolDecision } from '../../contract/permission.ts'
import { Problem } from '../../contract/problem.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { EventLog } from '../../events/event-log.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { OpenRequest } from './open-request.ts'
import { requestView, undecidedCalls } from './open-request.ts'
import type { DecideIntent, RejectIntent } from './approval-intents.ts'
import { nothingPending } from './approval-intents.ts'
import { permissionNotFound, requireSameInLog } from './decided-requests.ts'
import type { LiveState } from '../state/live-state.ts'

/** What approvals need from the conversation's actor. */
export type ApprovalActor = {
  /** Queues the work and runs it in turn. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Decides and stores the events; call it only in turn. */
  apply(intent: DecideIntent | RejectIntent): Promise<unknown>
}

export type ApprovalsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly toolCalls: Pick<ToolCalls, 'findFault'>
  readonly redact: (text: string) => string
  readonly actor: ApprovalActor
}

/** All methods throw a `Problem` for a decision that is not possible. */
export class Approvals {
  readonly #deps: ApprovalsDeps

  constructor(deps: ApprovalsDeps) {
    this.#deps = deps
  }

  /** Returns the pending requests with the decisions made so far. */
  pending(): PendingPermissions {
    const request = this.#waiting()
    return { items: request ? [requestView(request)] : [] }
  }

  /** Decides calls by id and content. Idempotent: the same decision again changes nothing, even long afterwards. */
  async decide(requestId: string, given: readonly ToolDecision[]): Promise<PermissionAnswer> {
    const { log, state, redact, actor } = this.#deps
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
    const decisions = mapStrings(given, redact) as readonly ToolDecision[]
    const isDecided = await actor.inTurn(async () => {
      const { request } = state.current
      if (request?.id !== requestId) return false
      for (const { tool_use_id, updated_input } of decisions) this.#checkUpdate(request, tool_use_id, updated_input)
      await actor.apply({ kind: 'decide', requestId, decisions })
      return true
    })
    // This runs out of turn: it only reads, possibly far back in the log, and closed requests do not change.
    if (!isDecided) await requireSameInLog(log, requestId, decisions)
    return this.#answer()
  }

  /** Allows every pending call of this request, as shown. */
  async approve(requestId: string): Promise<PermissionAnswer> {
    const request = this.#waiting()
    if (!request) throw nothingPending()
    if (request.id !== requestId) throw permissionNotFound()
    const decisions = undecidedCalls(request).map((call) => {
      return { tool_use_id: call.toolUseId, input_hash: call.inputHash, behavior: 'allow' as const }
    })
    return await this.decide(requestId, decisions)
  }

  /** Rejects every pending call. The model is not called, unless a queued message asked for a run. */
  async reject(reason = ''): Promise<PermissionAnswer> {
    const { redact, actor } = this.#deps
    await actor.inTurn(() =>
      actor.apply({ kind: 'reject', reason: redact(reason), newRunId: uuid7(), now: Date.now() }),
    )
    return this.#answer()
  }

  #waiting(): OpenRequest | undefined {
    const { request } = this.#deps.state.current
    return undecidedCalls(request).length ? request : undefined
  }

  #answer(): PermissionAnswer {
    const { status, request } = this.#deps.state.current
    return { status, pending: undecidedCalls(request).length }
  }

  #checkUpdate(request: OpenRequest, toolUseId: string, input: unknown): void {
    const call = request.calls.find((asked) => asked.toolUseId === toolUseId)
    const fault = call && input !== undefined ? this.#deps.toolCalls.findFault(call.name, input) : undefined
    if (fault !== undefined) throw new Problem('invalid_request', `updated_input: ${fault}`)
  }
}
