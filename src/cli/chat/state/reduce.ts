/** The fold of events into what the chat shows. Pure: `now` is the clock of this machine, in milliseconds. */
import type { Event, EventOf } from '../../../contract/events/event.ts'
import { describeEvent } from '../../../contract/events/describe-event.ts'
import { QUEUED } from '../../../contract/events/status.ts'
import type { TransientEvent } from '../../../contract/events/transient-event.ts'
import { boundedInput, endOf, startOf } from './bounded.ts'
import type { ChatState, LocalEvent } from './chat-state.ts'
import { revealLine } from './clean-text.ts'
import { withoutSending } from './delivery.ts'
import { startsInResult } from './diff-numbers.ts'
import { addLine } from './event-lines.ts'
import { add, addNotice, changeAnswer, changeCall, dropAnswer, hasAnswer, hasCall } from './items.ts'
import { nameOfMessage } from './conversation-name.ts'
import { addDelta, addToolOutput } from './live.ts'
import { withoutMessage } from './unread.ts'
import { addRequest, afterAnswer, afterCallResult, afterClosing } from './pending.ts'
import { reduceLocal } from './reduce-local.ts'
import { addCommandMessage } from './shell-command.ts'
import type { Usage } from '../../../contract/values/message.ts'
import { addCost, countUsage } from '../../../contract/values/message.ts'
import { resultOf } from '../../../contract/values/output-text.ts'

export type ChatEvent = Event | TransientEvent | LocalEvent

export function reduce(state: ChatState, event: ChatEvent, now: number): ChatState {
  switch (event.type) {
    case 'UserMessage':
      return addUserMessage(state, event)
    case 'MessageWithdrawn':
      return withoutMessage(state, event.message_seq)
    case 'Rewound':
      return afterRewind(state, event)
    case 'AssistantDelta':
      return addDelta(state, event)
    case 'AssistantAborted':
      return dropAnswer(state, event.message_id)
    case 'AssistantMessage':
      return addAnswer(state, event)
    case 'ToolUse':
      return addCall(state, event)
    case 'ToolOutputDelta':
      return addToolOutput(state, event)
    case 'ToolResult':
      return afterCallResult(addResult(state, event), event)
    case 'RequestOpened':
      return addRequest(state, event)
    case 'RequestAnswered':
      return afterAnswer(state, event)
    case 'RequestClosed':
      return afterClosing(state, event)
    case 'StatusUpdate':
      return changeStatus(state, event, now)
    case 'ConfigUpdate':
      return changeConfig(state, event)
    case 'ModelRetry':
      return addNotice(dropAnswer(state, event.message_id), 'warning', describeEvent(event))
    case 'Result':
      return endRun(state, event)
    case 'Condensation':
      return addNotice(withUsage(state, event.model, event.usage, event.cost_usd), 'info', describeEvent(event))
    case 'WorkspaceSnapshot':
      return state
    case 'Notice':
    case 'Sending':
    case 'Sent':
    case 'NotSent':
    case 'CommandStarted':
    case 'CommandEnded':
    case 'Located':
    case 'Answered':
    case 'Unanswered':
    case 'Connection':
    case 'Pending':
    case 'Viewed':
    case 'Read':
    case 'Cleared':
    case 'Ended':
      return reduceLocal(state, event, now)
    default:
      return addLine(state, event)
  }
}

function addUserMessage(state: ChatState, event: EventOf<'UserMessage'>): ChatState {
  const { content, sender, idempotency_key: key } = event
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
  const namedState = withName(state, text)
  const ofCommand = addCommandMessage(namedState, text, key)
  if (ofCommand) return ofCommand
  const images = content.filter(({ type }) => type === 'image').length
  const steers = state.status === 'running'
  const storedPart = { steers, event: { id: event.id, seq: event.seq }, ...(sender !== undefined && { sender }) }
  const item = { kind: 'user', text: startOf(text), images, ...storedPart } as const
  return add(withoutSending(namedState, key), item)
}

function withName(state: ChatState, text: string): ChatState {
  const name = state.isNamed ? '' : nameOfMessage(text)
  return name === '' ? state : { ...state, title: name, isNamed: true }
}

function addAnswer(state: ChatState, event: EventOf<'AssistantMessage'>): ChatState {
  const { input_tokens, output_tokens } = event.usage
  const contextTokens = event.agent_name === undefined ? input_tokens + output_tokens : state.contextTokens
  const readThrough = event.agent_name === undefined ? (event.read_through ?? event.seq) : state.readThrough
  const usedState = { ...state, contextTokens, readThrough, activity: undefined }
  const countedState = withUsage(usedState, event.model, event.usage, event.cost_usd)
  if (event.text.trim() === '' && !hasAnswer(countedState, event.message_id)) return countedState
  return changeAnswer(countedState, event.message_id, false, (answer) => ({
    ...answer,
    ...(event.agent_name !== undefined && { agent: event.agent_name }),
    ...partsOf(event.text),
    isComplete: true,
  }))
}

function partsOf(whole: string) {
  const { text, cut } = endOf(whole)
  return { parts: [text], isCut: cut > 0 }
}

function addCall(state: ChatState, { tool_use_id, name, input, agent_name }: EventOf<'ToolUse'>): ChatState {
  const agent = agent_name === undefined ? {} : { agent: agent_name }
  const shownInput = boundedInput(input ?? null)
  return changeCall(state, tool_use_id, (call) => ({ ...call, name, input: shownInput, ...agent }), name)
}

function addResult(state: ChatState, event: EventOf<'ToolResult'>): ChatState {
  if (!hasCall(state, event.tool_use_id)) return state
  const { is_error: isError, duration_ms: durationMs, ran_input } = event
  const text = resultOf(event)
  return changeCall(state, event.tool_use_id, (call) => {
    const input = ran_input === undefined ? call.input : boundedInput(ran_input)
    const starts = call.starts ?? startsInResult(input, text)
    return { ...call, note: undefined, input, starts, output: '', result: { text, isError, durationMs } }
  })
}

function changeStatus(state: ChatState, { status, reason }: EventOf<'StatusUpdate'>, now: number): ChatState {
  const isQueued = status === 'running' && reason === QUEUED
  const runningSince = status === 'running' ? (state.runningSince ?? now) : undefined
  return { ...state, status, isQueued, runningSince, activity: undefined }
}

/** Other clients can change what the agent may do. Titles are written by the server, and cost tokens. */
function changeConfig(state: ChatState, event: EventOf<'ConfigUpdate'>): ChatState {
  const { permission_mode, permission_rules: rules, llm_config: llm, title, ...others } = event.changes
  const model = typeof llm === 'object' && llm !== null && 'model' in llm ? llm.model : undefined
  const countedState = withUsage(state, event.model, event.usage, event.cost_usd)
  const titledState = typeof title === 'string' ? { ...countedState, title, isNamed: true } : countedState
  const withMode = changeSetting(titledState, 'mode', permission_mode, 'The permission mode')
  const withModel = changeSetting(withMode, 'model', model, 'The model')
  const withRules = rules === undefined ? withModel : changeRules(withModel, rules)
  const names = Object.keys(others).join(', ')
  return names === '' ? withRules : addNotice(withRules, 'info', `Configured: ${names}.`)
}

function changeRules(state: ChatState, rules: unknown): ChatState {
  const { allow } = typeof rules === 'object' && rules !== null && 'allow' in rules ? rules : { allow: [] }
  const allowedRules = Array.isArray(allow) ? allow.filter((rule) => typeof rule === 'string') : []
  const addedRules = allowedRules.filter((rule) => !state.allowed.includes(rule))
  const text =
    addedRules.length > 0
      ? `Allowed in this conversation from now on: ${addedRules.map(revealLine).join(', ')}`
      : 'The permission rules changed; /permissions lists them.'
  return addNotice({ ...state, allowed: allowedRules }, 'info', text)
}

function changeSetting(state: ChatState, field: 'mode' | 'model', value: unknown, name: string): ChatState {
  if (typeof value !== 'string' || state[field] === value) return state
  return addNotice({ ...state, [field]: value }, 'info', `${name} changed from ${state[field]} to ${value}.`)
}

/** Ends that need a word. The other ones are seen by the answer. */
const ENDS: Partial<Record<EventOf<'Result'>['stop_reason'], string>> = {
  paused: 'Interrupted. A message continues the conversation.',
  max_steps: 'The run has made the steps it may make. A message continues it.',
  iteration_limit: 'The run has reached its limit of steps. A message continues it.',
  time_limit: 'The run has reached its time limit. A message continues it.',
  budget_limit: 'The run has reached its budget.',
  token_limit: 'The run has reached its limit of tokens.',
  stuck: 'The agent repeated itself, and was stopped.',
  content_filter: 'The filter of the provider ended the answer.',
  server_restart: 'The server has restarted. A message continues the conversation.',
  owner_lost: 'The server that ran the agent has died. A message continues the conversation.',
  hook: 'A hook ended the run.',
  cancelled: 'The run was cancelled.',
}

function endRun(state: ChatState, event: EventOf<'Result'>): ChatState {
  if (event.parent_tool_use_id !== undefined)
    return addNotice(state, 'info', `${event.agent_name ?? 'The subagent'} is ${describeEvent(event)}`)
  const text = ENDS[event.stop_reason]
  const endedState = { ...state, lastRunMs: event.duration_ms, runningSince: undefined, activity: undefined }
  return text === undefined ? endedState : addNotice(endedState, 'warning', text)
}

/** The messages before that event stay. The note says it if nothing that is shown has a place in the log, because no message comes after the event. */
function afterRewind(state: ChatState, { to_seq, seq, restored }: EventOf<'Rewound'>): ChatState {
  const at = state.items.findIndex((item) => item.kind === 'user' && (item.event?.seq ?? 0) > to_seq)
  const items = at < 0 ? state.items : state.items.slice(0, at)
  const { context_tokens: contextTokens } = restored
  const back = { ...state, items, contextTokens, requests: [], readThrough: seq, activity: undefined }
  return addNotice(
    back,
    'info',
    at < 0
      ? `The conversation is back at event ${to_seq}: what came after it does not hold.`
      : 'The conversation is back at this point.',
  )
}

function withUsage(
  state: ChatState,
  model: string | undefined,
  usage: Usage | undefined,
  costUsd: number | undefined,
): ChatState {
  if (model === undefined || usage === undefined) return state
  return { ...state, usage: countUsage(state.usage, model, usage), costUsd: addCost(state.costUsd, costUsd) }
}
