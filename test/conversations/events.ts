/** Events of a log as tests write them down: drafts, and what the fold gets of them. */
import type { Event, EventDraft } from '../../src/contract/events/event.ts'
import type { Status } from '../../src/contract/events/status.ts'
import { versionOf } from '../../src/contract/events/event.ts'
import { NO_USAGE } from '../../src/contract/values/message.ts'
import type { Settings } from '../../src/state/settings.ts'
import type { State } from '../../src/state/state.ts'
import { EMPTY_STATE, fold } from '../../src/state/state.ts'
import { hashInput } from '../../src/policy/rules/input-hash.ts'
import { uuid7 } from '../../src/lib/uuid7.ts'

export const conversationId = '018f0000-0000-7000-8000-000000000001'
export const runId = '018f0000-0000-7000-8000-00000000000a'
export const requestId = '018f0000-0000-7000-8000-00000000000b'

export const questionId = '018f0000-0000-7000-8000-00000000000d'

/** When event 0 would have been, had there been one: one second before the first. */
export const START_MS = Date.parse('2026-01-01T00:00:00.000Z')

export const settings: Settings = {
  workdir: '/work',
  tools: ['Bash'],
  max_iteration_per_run: 500,
  llm_config: { model: 'scripted' },
}

/** As the log has it. */
export function stored(draft: EventDraft, seq: number): Event {
  const ms = START_MS + seq * 1000
  return {
    ...draft,
    id: uuid7(ms),
    seq,
    timestamp: new Date(ms).toISOString(),
    conversation_id: conversationId,
    version: versionOf(draft),
  }
}

/** The state after these, in a conversation that was just made. */
export function folded(
  drafts: readonly EventDraft[],
  from: State = { ...EMPTY_STATE, id: conversationId, settings },
): State {
  return drafts.reduce((state, draft) => fold(state, stored(draft, state.lastSeq + 1)), from)
}

export function systemInit(): EventDraft {
  return {
    type: 'SystemInit',
    source: 'environment',
    session_id: conversationId,
    cwd: settings.workdir,
    sdk_version: '0',
    options_summary: settings,
    enabled_tools: [...settings.tools],
    enabled_providers: ['openai'],
    mcp_servers: [],
    system_prompt: 'Be brief.',
    isolation: 'none',
  }
}

export function userMessage(text: string, run = false): EventDraft {
  return { type: 'UserMessage', source: 'user', content: [{ type: 'text', text }], run }
}

type DraftOf<T extends EventDraft['type']> = Extract<EventDraft, { type: T }>

export function status(to: Status, previous_status: Status = 'idle'): DraftOf<'StatusUpdate'> {
  return { type: 'StatusUpdate', source: 'environment', run_id: runId, status: to, previous_status, reason: 'a test' }
}

type Answer = { text?: string; calls?: readonly string[]; usage?: typeof NO_USAGE; model?: string; cost_usd?: number }

export function answered({
  text = '',
  calls = [],
  usage = NO_USAGE,
  model = 'scripted',
  ...cost
}: Answer): DraftOf<'AssistantMessage'> {
  const content = text ? [{ type: 'text' as const, text }] : []
  return {
    type: 'AssistantMessage',
    source: 'agent',
    run_id: runId,
    message_id: uuid7(),
    text,
    content,
    tool_use_ids: [...calls],
    model,
    usage,
    stop_reason: 'stop',
    ...cost,
  }
}

export function toolUse(id: string, input: unknown = { command: 'true' }, name = 'Bash'): EventDraft {
  return { type: 'ToolUse', source: 'agent', run_id: runId, tool_use_id: id, name, input }
}

export function toolResult(id: string, output: unknown = 'done'): DraftOf<'ToolResult'> {
  return {
    type: 'ToolResult',
    source: 'environment',
    run_id: runId,
    tool_use_id: id,
    output,
    is_error: false,
    duration_ms: 1,
  }
}

/** About calls of `toolUse`, as they are there. */
export function asked(ids: readonly string[], input: unknown = { command: 'true' }): PermissionOpened {
  const tool_uses = ids.map((tool_use_id) => {
    return { tool_use_id, name: 'Bash', input, input_hash: hashInput('Bash', input), reason: 'a test' }
  })
  return {
    type: 'RequestOpened',
    source: 'environment',
    run_id: runId,
    kind: 'permission',
    request_id: requestId,
    tool_use_ids: [...ids],
    payload: { tool_uses },
  }
}

export function decided(
  id: string,
  more: Partial<StoredDecision> & { request_id?: string; answered_by?: PermissionAnswered['answered_by'] } = {},
): PermissionAnswered {
  const { request_id = requestId, answered_by = 'user', ...decision } = more
  const input_hash = hashInput('Bash', { command: 'true' })
  return {
    type: 'RequestAnswered',
    source: 'user',
    kind: 'permission',
    request_id,
    tool_use_ids: [id],
    answer: { decisions: [{ tool_use_id: id, input_hash, behavior: 'allow', ...decision }] },
    answered_by,
  }
}

type PermissionOpened = Extract<EventDraft, { type: 'RequestOpened'; kind: 'permission' }>
type PermissionAnswered = Extract<EventDraft, { type: 'RequestAnswered'; kind: 'permission' }>
type QuestionOpened = Extract<EventDraft, { type: 'RequestOpened'; kind: 'question' }>
type StoredDecision = PermissionAnswered['answer']['decisions'][number]

export const clientRequestId = '018f0000-0000-7000-8000-00000000000d'
/** When a call of a client ends without a result, in milliseconds since 1970. */
export const DEADLINE_MS = START_MS + 120_000

/** The call with this id is executed by a client. */
export const handedOver = (id: string): Extract<EventDraft, { type: 'RequestOpened'; kind: 'client_tool' }> => ({
  type: 'RequestOpened',
  source: 'environment',
  run_id: runId,
  kind: 'client_tool',
  request_id: clientRequestId,
  deadline: new Date(DEADLINE_MS).toISOString(),
  tool_use_ids: [id],
  payload: { name: 'Bash', input: { command: 'true' } },
})

export const sentByClient = (id: string): Extract<EventDraft, { type: 'RequestAnswered'; kind: 'client_tool' }> => ({
  type: 'RequestAnswered',
  source: 'user',
  run_id: runId,
  kind: 'client_tool',
  request_id: clientRequestId,
  tool_use_ids: [id],
  answer: { output: 'found', is_error: false },
  answered_by: 'user',
})

/** Of the call with this id. */
export function questioned(id: string, request_id = questionId): QuestionOpened {
  const options = [
    { label: 'Yes', description: '' },
    { label: 'No', description: 'Not now.' },
  ]
  const questions = [{ question: 'Go on?', header: 'Go on', options, multi_select: false }]
  return {
    type: 'RequestOpened',
    source: 'environment',
    run_id: runId,
    kind: 'question',
    request_id,
    tool_use_ids: [id],
    payload: { questions },
  }
}
