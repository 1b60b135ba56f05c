/**
 * The open permission request and how its calls are decided: pure folds and decisions. Nothing here grants a call by
 * itself.
 */
import type { EventDraft, EventOf } from '../contract/events/event.ts'
import type { Decision, PendingPermissions, ToolDecision } from '../contract/permission.ts'
import { Problem } from '../contract/problem.ts'
import { canonicalJson } from '../lib/json/canonical-json.ts'
import { hashInput } from '../policy/rules/input-hash.ts'

/** The open request of the turn; it is removed when each of its calls has a result. */
export type OpenRequest = {
  readonly id: string
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

export function openRequest(event: EventOf<'PermissionRequest'>): OpenRequest {
  return {
    id: event.request_id,
    isReleased: false,
    calls: event.tool_uses.map((use) => ({
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

/** Returns the request as clients see it. */
export function requestView(request: OpenRequest): PendingPermissions['items'][number] {
  const tool_uses = request.calls.map(
    ({ toolUseId, name, input, inputHash, definitionHash, reason, rules, decision }) => {
      const asked = {
        tool_use_id: toolUseId,
        name,
        input,
        input_hash: inputHash,
        ...(definitionHash !== undefined && { definition_hash: definitionHash }),
        reason,
        ...(rules && { rules: [...rules] }),
      }
      return { ...asked, ...(decision && { decision: decision.behavior }) }
    },
  )
  return { request_id: request.id, tool_uses }
}

export function withDecision(
  request: OpenRequest | undefined,
  event: EventOf<'PermissionDecision'>,
): OpenRequest | undefined {
  const asked = request?.calls.find((call) => call.toolUseId === event.tool_use_id)
  // A decision about different content than was shown decides nothing.
  if (request?.id !== event.request_id || asked?.inputHash !== event.input_hash) return request
  const { behavior, updated_input, message } = event
  const decision = {
    behavior,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as it was checked when it came
    ...(updated_input !== undefined && { updated_input: updated_input as Record<string, unknown> }),
    ...(message !== undefined && { message }),
  }
  return {
    ...request,
    calls: request.calls.map((call) => (call.toolUseId === event.tool_use_id ? { ...call, decision } : call)),
  }
}

export const undecidedCalls = (request: OpenRequest | undefined) =>
  request?.calls.filter((call) => !call.decision) ?? []

/** Releases the request when the run continues; no call of an undecided turn runs. */
export const releasedRequest = (request: OpenRequest | undefined) =>
  request && !undecidedCalls(request).length ? { ...request, isReleased: true } : request

/** True if the call, with this exact content, was approved. */
export function isAllowed(request: OpenRequest | undefined, toolUseId: string, inputHash: () => string): boolean {
  const asked = request?.calls.find((call) => call.toolUseId === toolUseId)
  if (asked?.decision?.behavior !== 'allow') return false
  const { updated_input } = asked.decision
  return inputHash() === (updated_input === undefined ? asked.inputHash : hashInput(asked.name, updated_input))
}

/** Returns the events of these decisions; a repeated decision adds no event. Never throws: refusals are returned. */
export function decideCalls(
  request: OpenRequest,
  decisions: readonly ToolDecision[],
  run_id: string | undefined,
): EventDraft[] | Problem {
  const drafts: EventDraft[] = []
  for (const given of decisions) {
    const call = request.calls.find(({ toolUseId }) => toolUseId === given.tool_use_id)
    if (!call) return notOfThisRequest()
    if (call.inputHash !== given.input_hash) return inputChanged()
    if (call.decision) {
      if (isSame(call.decision, given)) continue
      return alreadyDecided()
    }
    if (drafts.some((draft) => draft.type === 'PermissionDecision' && draft.tool_use_id === given.tool_use_id)) {
      return new Problem('invalid_request', 'Two of the decisions are about the same call; send one for each.')
    }
    const { tool_use_id, input_hash, behavior, updated_input, message } = given
    drafts.push({
      type: 'PermissionDecision',
      source: 'user',
      ...(run_id !== undefined && { run_id }),
      request_id: request.id,
      tool_use_id,
      input_hash,
      behavior,
      ...(updated_input !== undefined && { updated_input }),
      ...(message !== undefined && { message }),
      decided_by: 'user',
    })
  }
  return drafts
}

/** True if these decisions match the log; used for requests that are closed. */
export function repeats(
  logged: readonly EventOf<'PermissionDecision'>[],
  decisions: readonly ToolDecision[],
): true | Problem {
  for (const given of decisions) {
    const made = logged.find((event) => event.tool_use_id === given.tool_use_id)
    // A request is closed only after each of its calls is decided.
    if (!made) return notOfThisRequest()
    if (made.input_hash !== given.input_hash) return inputChanged()
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as it was checked when it came
    if (made.decided_by !== 'user' || !isSame(made as Decision, given)) return alreadyDecided()
  }
  return true
}

function isSame(a: Decision, b: Decision): boolean {
  return a.behavior === b.behavior && canonicalJson(a.updated_input) === canonicalJson(b.updated_input)
}

const notOfThisRequest = () =>
  new Problem(
    'permission_not_found',
    'One of the decisions is about a call that is not part of this request; GET permissions lists its calls.',
  )

const inputChanged = () =>
  new Problem(
    'input_changed',
    'The input_hash does not match the call, so a different call was shown. Fetch it again with GET permissions, then decide.',
  )

const alreadyDecided = () =>
  new Problem('already_decided', 'This call has already been decided differently; a decision cannot be changed.')
