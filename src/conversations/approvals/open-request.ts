/** What waits for a decision and how it is decided: pure folds and decisions about one request. Nothing here grants by itself. */
import type { EventDraft, EventOf } from '../../contract/events/event.ts'
import type { Decision, PendingPermissions, ToolDecision } from '../../contract/permission.ts'
import { Problem } from '../../contract/problem.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { hashInput } from '../../policy/permissions.ts'

/** A request of the turn that is open; gone once each of its calls has a result. */
export type OpenRequest = {
  readonly id: string
  /** Whether the calls of the turn were let run since all of it was decided. */
  readonly isReleased: boolean
  readonly calls: readonly {
    readonly toolUseId: string
    readonly name: string
    readonly input: unknown
    readonly inputHash: string
    readonly reason: string
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
      reason: use.reason,
      decision: undefined,
    })),
  }
}

/** As clients are shown it. */
export function requestView(request: OpenRequest): PendingPermissions['items'][number] {
  const tool_uses = request.calls.map(({ toolUseId, name, input, inputHash, reason, decision }) => {
    const asked = { tool_use_id: toolUseId, name, input, input_hash: inputHash, reason }
    return { ...asked, ...(decision && { decision: decision.behavior }) }
  })
  return { request_id: request.id, tool_uses }
}

export function withDecision(
  request: OpenRequest | undefined,
  event: EventOf<'PermissionDecision'>,
): OpenRequest | undefined {
  const asked = request?.calls.find((call) => call.toolUseId === event.tool_use_id)
  // Of something else than what was shown: it decides nothing.
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

/** Once the run continues; nothing of an undecided turn runs. */
export const releasedRequest = (request: OpenRequest | undefined) =>
  request && !undecidedCalls(request).length ? { ...request, isReleased: true } : request

/** Whether the call, with this content, is what was approved. */
export function isAllowed(request: OpenRequest | undefined, toolUseId: string, inputHash: string): boolean {
  const asked = request?.calls.find((call) => call.toolUseId === toolUseId)
  if (asked?.decision?.behavior !== 'allow') return false
  const { updated_input } = asked.decision
  return inputHash === (updated_input === undefined ? asked.inputHash : hashInput(asked.name, updated_input))
}

/** The events of these decisions; a decision made already, and the same, is none. Throws nothing: refusals are returned. */
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

/** Whether these decisions repeat what the log has; for a request that is over. */
export function repeats(
  logged: readonly EventOf<'PermissionDecision'>[],
  decisions: readonly ToolDecision[],
): true | Problem {
  for (const given of decisions) {
    const made = logged.find((event) => event.tool_use_id === given.tool_use_id)
    // A request is over only when each of its calls is decided.
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
    'One of the decisions is about a call that this request has not; GET permissions shows those it has.',
  )

const inputChanged = () =>
  new Problem(
    'input_changed',
    'The input_hash is not that of the call: it is not what was shown. Look at it again with GET permissions, then decide.',
  )

const alreadyDecided = () =>
  new Problem('already_decided', 'This has been decided before, and differently; a decision is not taken back.')
