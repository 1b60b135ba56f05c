/** What a user decides of the agent's calls: shown, taken in, and put in order with the other commands of the conversation. */
import type { PendingPermissions, PermissionAnswer, ToolDecision } from '../../contract/permission.ts'
import { Problem } from '../../contract/problem.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { EventLog } from '../../events/event-log.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { OpenRequest } from './approvals.ts'
import { tellRequest, undecidedCalls } from './approvals.ts'
import type { DecideCommand, RejectCommand } from './approval-commands.ts'
import { nothingPending } from './approval-commands.ts'
import { permissionNotFound, requireSameInLog } from './decided-requests.ts'
import type { State } from '../state/state.ts'

export type DecisionsDeps = {
  readonly log: EventLog
  readonly toolCalls: Pick<ToolCalls, 'findFault'>
  readonly redact: (text: string) => string
  /** As it holds now. */
  readonly state: () => State
  /** Runs the task when its turn among the commands has come. */
  readonly inTurn: <T>(task: () => Promise<T>) => Promise<T>
  /** Decides and stores; in turn only. */
  readonly carryOut: (command: DecideCommand | RejectCommand) => Promise<unknown>
}

/** All of them throw a `Problem` for what cannot be decided (so). */
export interface Decisions {
  /** What waits now, with what has been decided of it. */
  pending(): PendingPermissions
  /** By id and by content; the same decision again changes nothing, also long afterwards. */
  decide(requestId: string, decisions: readonly ToolDecision[]): Promise<PermissionAnswer>
  /** Allows all that waits in this request, as it was shown. */
  approve(requestId: string): Promise<PermissionAnswer>
  /** Refuses all that waits; the model is not called, unless a message that asked for a run waits to be read. */
  reject(reason: string | undefined): Promise<PermissionAnswer>
}

export function createDecisions({ log, toolCalls, redact, state, inTurn, carryOut }: DecisionsDeps): Decisions {
  const waiting = (): OpenRequest | undefined => {
    const { request } = state()
    return undecidedCalls(request).length ? request : undefined
  }
  const answer = (): PermissionAnswer => {
    return { status: state().status, pending: undecidedCalls(state().request).length }
  }

  const decide: Decisions['decide'] = async (requestId, given) => {
    const decisions = mapStrings(given, redact) as readonly ToolDecision[] // texts only: the shape stays
    const isDecided = await inTurn(async () => {
      const { request } = state()
      if (request?.id !== requestId) return false
      for (const { tool_use_id, updated_input } of decisions) checkUpdate(request, tool_use_id, updated_input)
      await carryOut({ kind: 'decide', requestId, decisions })
      return true
    })
    // Out of turn: it only reads, maybe far back, and what is over does not change.
    if (!isDecided) await requireSameInLog(log, requestId, decisions)
    return answer()
  }

  function checkUpdate(request: OpenRequest, toolUseId: string, input: unknown): void {
    const call = request.calls.find((asked) => asked.toolUseId === toolUseId)
    const fault = call && input !== undefined ? toolCalls.findFault(call.name, input) : undefined
    if (fault !== undefined) throw new Problem('invalid_request', `updated_input: ${fault}`)
  }

  return {
    pending() {
      const request = waiting()
      return { items: request ? [tellRequest(request)] : [] }
    },
    decide,
    async approve(requestId) {
      const request = waiting()
      if (!request) throw nothingPending()
      if (request.id !== requestId) throw permissionNotFound()
      const decisions = undecidedCalls(request).map((call) => {
        return { tool_use_id: call.toolUseId, input_hash: call.inputHash, behavior: 'allow' as const }
      })
      return await decide(requestId, decisions)
    },
    async reject(reason = '') {
      await inTurn(() => carryOut({ kind: 'reject', reason: redact(reason), newRunId: uuid7(), now: Date.now() }))
      return answer()
    },
  }
}
