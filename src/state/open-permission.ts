/**
 * The open permission request and how its calls are decided: pure folds and decisions. Nothing here grants a call by
 * itself.
 */
import type { EventOf } from '../contract/events/event.ts'
import type { Decision, ToolDecision } from '../contract/values/permission.ts'
import { Problem } from '../contract/problem.ts'
import { canonicalJson } from '../lib/json/canonical-json.ts'
import { hashInput } from '../policy/rules/input-hash.ts'

/** An opening of a permission request, as the log has it. */
type PermissionOpened = Extract<EventOf<'RequestOpened'>, { kind: 'permission' }>
export type PermissionAnswered = Extract<EventOf<'RequestAnswered'>, { kind: 'permission' }>
/** A decision about one call, as the log has it. */
export type StoredDecision = PermissionAnswered['answer']['decisions'][number]

/** The open request of the turn; it is removed when each of its calls has a result. */
export type OpenPermission = {
  readonly id: string
  /** RFC 3339. */
  readonly openedAt: string
  /** True if the calls of the turn have been released to run, after all of them were decided. */
  readonly isReleased: boolean
  readonly calls: readonly {
    readonly toolUseId: string
    readonly name: string
    readonly input: unknown
    readonly inputHash: string
    readonly definitionHash?: string | undefined
    readonly reason: string
    /** What `remember` adds. */
    readonly rules?: readonly string[] | undefined
    readonly decision: Decision | undefined
  }[]
}

export function openPermission(event: PermissionOpened): OpenPermission {
  return {
    id: event.request_id,
    openedAt: event.timestamp,
    isReleased: false,
    calls: event.payload.tool_uses.map((use) => ({
      toolUseId: use.tool_use_id,
      name: use.name,
      input: use.input,
      inputHash: use.input_hash,
      ...(use.definition_hash !== undefined && { definitionHash: use.definition_hash }),
      reason: use.reason,
      ...(use.rules && { rules: use.rules }),
      decision: undefined,
    })),
  }
}

export function withDecision(
  request: OpenPermission | undefined,
  requestId: string,
  { tool_use_id, input_hash, ...decision }: StoredDecision,
): OpenPermission | undefined {
  const askedCall = request?.calls.find((call) => call.toolUseId === tool_use_id)
  // A decision about different content than was shown decides nothing.
  if (request?.id !== requestId || askedCall?.inputHash !== input_hash) return request
  return {
    ...request,
    calls: request.calls.map((call) => (call.toolUseId === tool_use_id ? { ...call, decision } : call)),
  }
}

/** A closed request denies what was not decided. */
export function afterClosing(
  request: OpenPermission | undefined,
  { request_id, message }: EventOf<'RequestClosed'>,
): OpenPermission | undefined {
  if (request?.id !== request_id) return request
  const decision: Decision = { behavior: 'deny', ...(message !== undefined && { message }) }
  return { ...request, calls: request.calls.map((call) => ({ ...call, decision: call.decision ?? decision })) }
}

export const undecidedCalls = (request: OpenPermission | undefined) =>
  request?.calls.filter((call) => !call.decision) ?? []

/** Releases the request when the run continues; no call of an undecided turn runs. */
export const releasedRequest = (request: OpenPermission | undefined) =>
  request && !undecidedCalls(request).length ? { ...request, isReleased: true } : request

/** True if the call, with this exact content, was approved. */
export function isAllowed(request: OpenPermission | undefined, toolUseId: string, inputHash: () => string): boolean {
  const askedCall = request?.calls.find((call) => call.toolUseId === toolUseId)
  if (askedCall?.decision?.behavior !== 'allow') return false
  const { updated_input } = askedCall.decision
  return inputHash() === (updated_input === undefined ? askedCall.inputHash : hashInput(askedCall.name, updated_input))
}

/** Returns the decisions that are new; a repeated one adds nothing. Never throws: refusals are returned. */
export function newDecisions(request: OpenPermission, decisions: readonly ToolDecision[]): StoredDecision[] | Problem {
  const storedDecisions: StoredDecision[] = []
  for (const toolDecision of decisions) {
    const call = request.calls.find(({ toolUseId }) => toolUseId === toolDecision.tool_use_id)
    if (!call) return notOfThisRequest()
    if (call.inputHash !== toolDecision.input_hash) return inputChanged()
    if (call.decision) {
      if (isSame(call.decision, toolDecision)) continue
      return alreadyDecided()
    }
    if (storedDecisions.some(({ tool_use_id }) => tool_use_id === toolDecision.tool_use_id)) {
      return new Problem('invalid_request', 'Two of the decisions are about the same call; send one for each.')
    }
    const { remember: _, ...decision } = toolDecision
    storedDecisions.push(decision)
  }
  return storedDecisions
}

/** Returns how these decisions compare with the answers in the log, for a request that is closed. */
export function repeats(
  openedRequest: PermissionOpened,
  answers: readonly PermissionAnswered[],
  decisions: readonly ToolDecision[],
): 'same' | 'other' | 'none' | Problem {
  const loggedDecisions = answers.flatMap(({ answer }) => answer.decisions)
  for (const toolDecision of decisions) {
    const askedCall = openedRequest.payload.tool_uses.find(
      ({ tool_use_id }) => tool_use_id === toolDecision.tool_use_id,
    )
    if (!askedCall) return notOfThisRequest()
    if (askedCall.input_hash !== toolDecision.input_hash) return inputChanged()
    const loggedDecision = loggedDecisions.find(({ tool_use_id }) => tool_use_id === toolDecision.tool_use_id)
    // It was closed before this call was decided.
    if (!loggedDecision) return 'none'
    if (!isSame(loggedDecision, toolDecision)) return 'other'
  }
  return 'same'
}

function isSame(a: Decision, b: Decision): boolean {
  return a.behavior === b.behavior && canonicalJson(a.updated_input) === canonicalJson(b.updated_input)
}

const notOfThisRequest = () =>
  new Problem(
    'invalid_request',
    'One of the decisions is about a call that is not part of this request; GET requests/{request_id} shows its calls.',
  )

const inputChanged = () =>
  new Problem(
    'input_changed',
    'The input_hash does not match the call, so a different call was shown. Fetch it again with GET requests/{request_id}, then decide.',
  )

const alreadyDecided = () =>
  new Problem('already_answered', 'This call has already been decided differently; the first decision counts.')
