/** Permission requests: which tool calls wait for a user, and how the user decides them. */
import type { ToolDecision } from '../../contract/values/permission.ts'
import { Problem } from '../../contract/problem.ts'
import type { AnswerOf, RequestAccepted } from '../../contract/request.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { EventLog } from '../../events/event-log.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { OpenPermission } from '../../state/open-permission.ts'
import { repeats } from '../../state/open-permission.ts'
import { permissionRequests } from '../../state/open-requests.ts'
import type { State } from '../../state/state.ts'
import type { EndingRequests } from '../live/ending-requests.ts'
import type { LiveState } from '../live/live-state.ts'
import { findClosed } from './closed-requests.ts'
import type { EarlierAnswer, RequestHandler } from './request-handler.ts'
import type { IntentInbox } from '../live/inbox.ts'

export type PermissionsDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly toolCalls: Pick<ToolCalls, 'readInput'>
  readonly ending: EndingRequests
  readonly redact: (text: string) => string
  readonly actor: IntentInbox
}

type Answer = AnswerOf<'permission'>

export class Permissions implements RequestHandler<'permission'> {
  readonly #deps: PermissionsDeps

  constructor(deps: PermissionsDeps) {
    this.#deps = deps
  }

  open() {
    return permissionRequests(this.#deps.state.current).filter(this.#deps.ending.canBeAnswered)
  }

  /** Ids and hashes are compared, and not stored before they are found: a secret may be a part of one. */
  redact({ kind, decisions }: Answer): Answer {
    const { redact } = this.#deps
    const redactedDecisions = decisions.map(({ updated_input, message, ...decision }) => ({
      ...decision,
      ...(updated_input !== undefined && { updated_input: mapStrings(updated_input, redact) }),
      ...(message !== undefined && { message: redact(message) }),
    }))
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
    return { kind, decisions: redactedDecisions as ToolDecision[] }
  }

  check(requestId: string, { decisions }: Answer): void {
    const request = requestsIn(this.#deps.state.current).find(({ id }) => id === requestId)
    if (request)
      for (const { tool_use_id, updated_input } of decisions) this.#checkUpdate(request, tool_use_id, updated_input)
  }

  /** Decides calls by id and content. The same decision again changes nothing. */
  async answer(requestId: string, answer: Answer, keyName: string | undefined): Promise<boolean> {
    const { decisions } = answer
    const { state, ending, actor } = this.#deps
    return await actor.enqueue(async () => {
      const request = requestsIn(state.current).find(({ id }) => id === requestId)
      if (!request || ending.ids.has(requestId)) return false
      this.check(requestId, answer)
      await ending.storing(() => actor.apply({ kind: 'decide', requestId, decisions, keyName }))
      return true
    })
  }

  async compare(requestId: string, { decisions }: Answer): Promise<EarlierAnswer> {
    const closedRequest = await findClosed(this.#deps.log, 'permission', requestId)
    if (!closedRequest) return 'unknown'
    const { kind } = closedRequest.opened
    const answers = closedRequest.answers.map((each) => ({ ...each, answer: this.redact({ kind, ...each.answer }) }))
    const comparison = repeats(closedRequest.opened, answers, decisions)
    if (comparison instanceof Problem) throw comparison
    return comparison
  }

  /** Rejects every pending call. The model is not called, unless a queued message asked for a run. */
  async reject(reason = '', keyName?: string): Promise<RequestAccepted> {
    const { state, redact, actor } = this.#deps
    await actor.enqueue(() =>
      actor.apply({ kind: 'reject', reason: redact(reason), newRunId: uuid7(), now: Date.now(), keyName }),
    )
    return { status: state.current.status, pending: this.open().length }
  }

  #checkUpdate(request: OpenPermission, toolUseId: string, input: unknown): void {
    const call = request.calls.find((askedCall) => askedCall.toolUseId === toolUseId)
    if (!call || input === undefined) return
    const toolInput = this.#deps.toolCalls.readInput(call.name, input)
    if ('fault' in toolInput) throw new Problem('invalid_request', `updated_input: ${toolInput.fault}`)
  }
}

/** Returns the requests of all agents: the pending ones and those that are decided, while their calls have no results. */
const requestsIn = ({ request, subagents }: State): OpenPermission[] =>
  [request, ...subagents.map(({ agent }) => agent.request)].filter((each) => each !== undefined)
