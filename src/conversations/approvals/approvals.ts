/** The approvals of one conversation: which calls of the agent wait for a user, and how the user decides them. */
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

/** What approvals need of the conversation's actor. */
export type ApprovalActor = {
  /** Runs the work when its turn has come. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Decides and stores; in turn only. */
  apply(intent: DecideIntent | RejectIntent): Promise<unknown>
}

export type ApprovalsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly toolCalls: Pick<ToolCalls, 'findFault'>
  readonly redact: (text: string) => string
  readonly actor: ApprovalActor
}

/** All methods throw a `Problem` for what cannot be decided. */
export class Approvals {
  readonly #deps: ApprovalsDeps

  constructor(deps: ApprovalsDeps) {
    this.#deps = deps
  }

  /** What waits now, with what has been decided of it. */
  pending(): PendingPermissions {
    const request = this.#waiting()
    return { items: request ? [requestView(request)] : [] }
  }

  /** By id and by content; the same decision again changes nothing, also long afterwards. */
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
    // Out of turn: it only reads, maybe far back, and what is over does not change.
    if (!isDecided) await requireSameInLog(log, requestId, decisions)
    return this.#answer()
  }

  /** Allows all that waits in this request, as it was shown. */
  async approve(requestId: string): Promise<PermissionAnswer> {
    const request = this.#waiting()
    if (!request) throw nothingPending()
    if (request.id !== requestId) throw permissionNotFound()
    const decisions = undecidedCalls(request).map((call) => {
      return { tool_use_id: call.toolUseId, input_hash: call.inputHash, behavior: 'allow' as const }
    })
    return await this.decide(requestId, decisions)
  }

  /** Refuses all that waits; the model is not called, unless a message that asked for a run waits to be read. */
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
