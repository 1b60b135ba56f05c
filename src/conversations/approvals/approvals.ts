/** The approvals of one conversation: which tool calls wait for a user, and how the user decides them. */
import type { PendingPermissions, PermissionAnswer, ToolDecision } from '../../contract/permission.ts'
import { Problem } from '../../contract/problem.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { EventLog } from '../../events/event-log.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { OpenRequest } from '../../state/open-request.ts'
import { requestView, undecidedCalls } from '../../state/open-request.ts'
import type { DecideIntent, RejectIntent } from '../../state/approval-intents.ts'
import { nothingPending } from '../../state/approval-intents.ts'
import { permissionNotFound, requireSameInLog } from './decided-requests.ts'
import type { LiveState } from '../live-state.ts'
import type { State } from '../../state/state.ts'
import { openRequests } from '../../state/subagents.ts'

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
    const { current } = this.#deps.state
    return {
      items: openRequests(current).map((request) => ({ ...requestView(request), ...agentOf(current, request) })),
    }
  }

  /** Decides calls by id and content. Idempotent: the same decision again changes nothing, even long afterwards. */
  async decide(requestId: string, given: readonly ToolDecision[]): Promise<PermissionAnswer> {
    const { log, state, redact, actor } = this.#deps
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
    const decisions = mapStrings(given, redact) as readonly ToolDecision[]
    const isDecided = await actor.inTurn(async () => {
      const request = requestsIn(state.current).find(({ id }) => id === requestId)
      if (!request) return false
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
    const waiting = openRequests(this.#deps.state.current)
    if (waiting.length === 0) throw nothingPending()
    const request = waiting.find(({ id }) => id === requestId)
    if (!request) throw permissionNotFound()
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

  #answer(): PermissionAnswer {
    const { current } = this.#deps.state
    return { status: current.status, pending: openRequests(current).flatMap(undecidedCalls).length }
  }

  #checkUpdate(request: OpenRequest, toolUseId: string, input: unknown): void {
    const call = request.calls.find((asked) => asked.toolUseId === toolUseId)
    const fault = call && input !== undefined ? this.#deps.toolCalls.findFault(call.name, input) : undefined
    if (fault !== undefined) throw new Problem('invalid_request', `updated_input: ${fault}`)
  }
}

/** Of all agents: the pending ones and those that are decided, while their calls have no results. */
const requestsIn = ({ request, subagents }: State): OpenRequest[] =>
  [request, ...subagents.map(({ agent }) => agent.request)].filter((each) => each !== undefined)

/** Which subagent waits for the decision. */
function agentOf({ subagents }: State, request: OpenRequest) {
  const subagent = subagents.find(({ agent }) => agent.request === request)
  return subagent && { parent_tool_use_id: subagent.toolUseId, agent_name: subagent.name }
}
