/**
 * The state of a conversation as a pure fold over its events. The only file that decides which event leads to which
 * status.
 */
import { previewAfter } from './preview.ts'
import { afterRewind } from './rewind.ts'
import { NO_REPEATS, repeatsAfter } from './repeats/repeats.ts'
import type { GateRules, GatedCall } from '../policy/rules/gate-rules.ts'
import { hashInput } from '../policy/rules/input-hash.ts'
import { mcpRules } from './mcp-tools.ts'
import { joinedRules } from '../policy/rules/rule-set.ts'
import { withMessageId, withPostedKey } from './idempotency.ts'
import { afterClosing, isAllowed, openPermission, releasedRequest } from './open-permission.ts'
import { requestsAfter, requestsAfterResult } from './open-requests.ts'
import { withClientResult } from './client-result.ts'
import { afterEnd, answeredAfterResult, answeredBy } from './answered.ts'
import { afterDecisions } from './decided-calls.ts'
import { afterHook, withoutVerdicts } from './hooked-calls.ts'
import { tasksAfter, tasksInRun } from './task-state.ts'
import type { Event, EventOf } from '../contract/events/event.ts'
import { EVENT_VERSION } from '../contract/events/event.ts'
import type { Usage } from '../contract/values/message.ts'
import { addCost, countUsage } from '../contract/values/message.ts'
import { Problem } from '../contract/problem.ts'
import { countInARow, runAfter, runAfterAnswer, runAfterOutputRequest, spentBesides } from './run-state.ts'
import { Settings, settingsIn, withChanges } from './settings.ts'
import type { OverriddenRun } from './run-overrides.ts'
import { afterChange, afterMessage, modeOf, overridesIn, overridesOf } from './run-overrides.ts'
import type { AgentState, State } from './state-shape.ts'
import { foldSubagent, releasedSubagents, unjudgedSubagents, withoutAnswered } from './subagents.ts'
import { grantedByMessage, grantedByResult } from './used-entries.ts'

export type { State } from './state-shape.ts'
export { EMPTY_STATE } from './state-shape.ts'

/** Returns the state after one more event. Pure. */
export function fold(state: State, event: Event): State {
  const isOfSubagent = 'parent_tool_use_id' in event && event.parent_tool_use_id !== undefined
  return isOfSubagent ? foldSubagent(state, event, foldOwn) : foldOwn(state, event)
}

/** The event belongs to the agent whose part of the state this is. */
function foldOwn(state: State, event: Event): State {
  const next = {
    ...state,
    id: event.conversation_id,
    lastSeq: event.seq,
    createdAt: state.createdAt || event.timestamp,
    updatedAt: event.timestamp,
    version: Math.max(state.version, event.version),
    repeats: repeatsAfter(state.repeats, event, state.openCalls),
  }
  switch (event.type) {
    case 'SystemInit':
      return { ...next, settings: readSettings(state, event, () => Settings.parse(settingsIn(event))) }
    case 'ConfigUpdate':
      return afterConfig(next, event)
    case 'UserMessage':
      return {
        ...next,
        postedKeys: withPostedKey(state.postedKeys, event),
        ...(event.client_message_id !== undefined && withMessageId(state, event.client_message_id, event.seq)),
        runRequestedAt: event.run ? event.seq : state.runRequestedAt,
        runsInARow: 0,
        lastRun: afterMessage(state),
        answered: undefined,
        granted: event.slash_command && grantedByMessage(state.settings.project_settings, event),
        ...(!state.preview && previewAfter(state, event)),
      }
    case 'MessageWithdrawn':
      // What its slash command allows ends with it.
      return { ...next, runRequestedAt: event.run_requested_at ?? 0, granted: undefined, ...previewAfter(state, event) }
    case 'Rewound':
      return afterRewind(next, event)
    case 'OutputRequest':
      return { ...next, run: state.run && runAfterOutputRequest(state.run, event), answered: undefined }
    case 'AssistantMessage':
      return afterAnswer(next, event)
    case 'Condensation':
      return afterCompaction(next, event)
    case 'ToolUse':
      return afterCall(next, event)
    case 'ToolResult':
      return afterResult(next, event)
    case 'RequestOpened':
      if (event.kind === 'permission') return { ...next, request: openPermission(event) }
      return { ...next, requests: requestsAfter(state.requests, event) }
    case 'RequestAnswered':
      return afterRequestAnswer(next, event)
    case 'RequestClosed':
      if (event.kind === 'permission') return { ...next, request: afterClosing(state.request, event) }
      return afterRequestEnd(next, event)
    case 'StatusUpdate':
      return afterStatus(next, event)
    case 'TaskUpdate':
      return { ...next, postedKeys: withPostedKey(state.postedKeys, event), tasks: tasksAfter(state.tasks, event) }
    case 'ClientEvent':
    case 'FilesRestored':
      return { ...next, postedKeys: withPostedKey(state.postedKeys, event) }
    case 'ForkedFrom':
      return afterFork(next, event)
    case 'HookEvent':
      return afterHook(next, event)
    case 'SubagentStart':
    case 'SecretsUpdate':
    case 'WorkspaceSnapshot':
    case 'FileUpdate':
    case 'NetworkAccess':
    case 'McpServerUpdate':
    case 'CommandResult':
    case 'ProcessesEnded':
    case 'ModelRetry':
    case 'ErrorEvent':
      return next
    case 'Result':
      return { ...next, ...afterEnd(state.answered, event) }
    default:
      // An event of a newer server may change the state: continue reading, but do not run.
      event satisfies never
      return { ...next, version: Math.max(next.version, EVENT_VERSION + 1) }
  }
}

const afterCompaction = (state: State, event: EventOf<'Condensation'>): State => ({
  ...state,
  forgotten: forgottenAfter(state, event),
  contextTokens: event.tokens_after,
  ...spentBesides(state, event),
})

/**
 * Returns the open calls as the permission gate needs them. An approval applies to the call as shown, by id and
 * content.
 */
export function gatedCalls({ openCalls, request }: State): GatedCall[] {
  return openCalls.map(({ toolUseId, name, input, hook }) => ({
    toolUseId,
    name,
    input,
    hook,
    // Asked for one by one, because the hash of a large input takes time.
    get approved() {
      return isAllowed(request, toolUseId, () => hashInput(name, input))
    },
  }))
}

/** The rules and the mode of the conversation; `rulesOfAgent` has those of a subagent. */
export function rulesOf(state: OverriddenRun & Pick<State, 'settings' | 'granted'>): GateRules {
  const { settings, granted } = state
  return {
    mode: modeOf(state),
    confirmation: settings.confirmation_mode ?? false,
    rules: joinedRules(
      settings.permission_rules,
      settings.project_settings?.permission_rules,
      granted,
      mcpRules(settings.mcp),
      overridesOf(state)?.allowed,
    ),
  }
}

/**
 * Settings of a newer version may be unreadable: the conversation can still be read, but not run. Settings of our
 * version that do not parse are damage.
 */
function readSettings(state: State, event: Event, parse: () => Settings): Settings {
  try {
    return parse()
  } catch (cause) {
    if (event.version > EVENT_VERSION) return state.settings
    throw new Problem(
      'conversation_damaged',
      `Event ${event.seq} of this conversation contains invalid settings. Restore events.jsonl from a backup.`,
      { cause },
    )
  }
}

/** A fork is independent from here on: earlier events were made, paid for and requested by the original. */
function afterFork(state: State, event: EventOf<'ForkedFrom'>): State {
  const settings = readSettings(state, event, () => Settings.parse(event.options_summary))
  const { lastRun } = state
  return {
    ...state,
    settings,
    createdAt: event.timestamp,
    usage: {},
    costUsd: undefined,
    postedKeys: [],
    granted: undefined,
    answered: undefined,
    // What one run of the original may do is not for the fork: a crash at its first run would continue with it.
    lastRun: lastRun && { id: lastRun.id, startSeq: lastRun.startSeq },
  }
}

function afterRequestAnswer(state: State, event: EventOf<'RequestAnswered'>): State {
  return event.kind === 'permission' ? afterDecisions(state, event) : afterRequestEnd(state, event)
}

function afterRequestEnd(state: State, event: EventOf<'RequestAnswered' | 'RequestClosed'>): State {
  const requests = requestsAfter(state.requests, event)
  const openCalls = event.kind === 'client_tool' ? withClientResult(state.openCalls, event) : state.openCalls
  return { ...state, requests, openCalls }
}

function afterConfig(before: State, event: EventOf<'ConfigUpdate'>): State {
  const state = { ...before, lastRun: afterChange(before, event.changes) }
  const settings = readSettings(state, event, () => withChanges(state.settings, event.changes))
  const spentCosts = spentBesides(state, event)
  if (!('hooks' in event.changes)) return { ...state, ...spentCosts, settings }
  const subagents = unjudgedSubagents(state.subagents)
  const openCalls = withoutVerdicts(state.openCalls)
  return { ...state, ...spentCosts, settings, hooksAt: event.seq, openCalls, subagents }
}

function afterStatus(state: State, event: EventOf<'StatusUpdate'>): State {
  const { status, reason } = event
  const run = runAfter(state.run, state.status, event)
  const request = status === 'running' && state.request ? releasedRequest(state.request) : state.request
  // A pause, a restart of the server and `max_steps` change nothing about what the agent repeats.
  const continues = run?.id === state.run?.id || status === 'paused' || state.status === 'paused'
  const repeats = continues ? state.repeats : NO_REPEATS
  const holdsCalls = status === 'waiting_for_input' || (state.holdsCalls && status !== 'running')
  const rules = run || !state.run ? state.granted : undefined
  const tasks = state.tasks.length > 0 ? tasksInRun(state.tasks, run?.id) : state.tasks
  const releases = status === 'running' && state.subagents.length > 0
  const subagents = releases ? releasedSubagents(state.subagents) : state.subagents
  const isNew = run !== undefined && run.id !== state.run?.id
  const beginning = isNew && {
    runsInARow: countInARow(state.runsInARow, reason),
    lastRun: { id: run.id, startSeq: run.startSeq, ...overridesIn(event) },
  }
  return { ...state, status, reason, run, ...beginning, request, holdsCalls, repeats, granted: rules, tasks, subagents }
}

/** A condensation that forgets less than an earlier one only shortens results. */
function forgottenAfter({ forgotten }: AgentState, event: EventOf<'Condensation'>): AgentState['forgotten'] {
  const { seq, forgotten_through_seq: throughSeq } = event
  return throughSeq > (forgotten?.throughSeq ?? 0) ? { seq, throughSeq } : forgotten
}

function afterAnswer(state: State, event: EventOf<'AssistantMessage'>): State {
  const usage = countUsage(state.usage, event.model, event.usage)
  const costUsd = addCost(state.costUsd, event.cost_usd)
  // Events of earlier versions do not record it: everything before the answer counts as read.
  const readThrough = event.read_through ?? event.seq
  const end = answeredBy(event)
  const contextTokens = tokensAfter(event.usage) || state.contextTokens
  const run = state.run && runAfterAnswer(state.run, event)
  return { ...state, run, readThrough, usage, costUsd, contextTokens, answered: end }
}

/** Most endpoints leave reasoning out of the next request. */
const tokensAfter = ({ input_tokens, output_tokens, reasoning_tokens }: Usage): number =>
  input_tokens + Math.max(0, output_tokens - reasoning_tokens)

function afterCall(state: State, event: EventOf<'ToolUse'>): State {
  const { tool_use_id: toolUseId, name, input, run_id: runId } = event
  return { ...state, openCalls: [...state.openCalls, { toolUseId, name, input, runId }] }
}

function afterResult(state: State, event: EventOf<'ToolResult'>): State {
  const openCalls = state.openCalls.filter((call) => call.toolUseId !== event.tool_use_id)
  const request = openCalls.length ? state.request : undefined
  const requests = requestsAfterResult(state.requests, event.tool_use_id)
  const holdsCalls = state.holdsCalls && openCalls.length > 0
  const rules = grantedByResult(state, event)
  const subagents = withoutAnswered(state.subagents, event.tool_use_id)
  const name = state.openCalls.find((call) => call.toolUseId === event.tool_use_id)?.name
  const lastOutputs = outputsAfter(state, name, event)
  const end = answeredAfterResult(state.answered, name, event)
  return { ...state, openCalls, subagents, request, requests, holdsCalls, granted: rules, lastOutputs, answered: end }
}

/** Tools whose state is the output of their last successful call: it is stored only in the log. */
export const TOOLS_KEPT_IN_LOG: ReadonlySet<string> = new Set(['TaskTracker'])

function outputsAfter(
  { lastOutputs }: State,
  name: string | undefined,
  event: EventOf<'ToolResult'>,
): State['lastOutputs'] {
  const isKept = name !== undefined && TOOLS_KEPT_IN_LOG.has(name) && !event.is_error
  return isKept ? { ...lastOutputs, [name]: event.output } : lastOutputs
}
