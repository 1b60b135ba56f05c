/** The fold of events into what the chat shows. Pure: `now` is the clock of this machine, in milliseconds. */
import type { Event, EventOf } from '../../../contract/events/event.ts'
import { describeEvent } from '../../../contract/events/describe-event.ts'
import { QUEUED } from '../../../contract/events/status.ts'
import type { TransientEvent } from '../../../contract/events/transient-event.ts'
import type { ChatState, LocalEvent } from './chat-state.ts'
import { add, addNotice, changeAnswer, changeCall, dropAnswer, hasAnswer, hasCall } from './items.ts'
import { addDelta, addToolOutput } from './live.ts'
import { afterDecision, afterNetworkDecision, ask, askNetwork, askQuestion, closeQuestion } from './pending.ts'
import { resultOf } from './tool-text.ts'
import { withUsage } from './usage.ts'

export type ChatEvent = Event | TransientEvent | LocalEvent

export function reduce(state: ChatState, event: ChatEvent, now: number): ChatState {
  switch (event.type) {
    case 'UserMessage':
      return addUserMessage(state, event)
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
      return closeQuestion(addResult(state, event), event)
    case 'PermissionRequest':
      return ask(state, event)
    case 'PermissionDecision':
      return afterDecision(state, event)
    case 'UserQuestion':
      return askQuestion(state, event)
    case 'UserAnswer':
      return closeQuestion(state, event)
    case 'NetworkRequest':
      return askNetwork(state, event)
    case 'NetworkDecision':
      return afterNetworkDecision(state, event)
    case 'StatusUpdate':
      return changeStatus(state, event, now)
    case 'ConfigUpdate':
      return changeConfig(state, event.changes)
    case 'ModelRetry':
      return addNotice(dropAnswer(state, event.message_id), 'warning', describeEvent(event))
    case 'ErrorEvent':
      return addNotice(state, 'error', event.message)
    case 'Result':
      return endRun(state, event)
    case 'Condensation':
      return addNotice(withUsage(state, event.model, event.usage, event.cost_usd), 'info', describeEvent(event))
    case 'HookEvent':
      return event.message === undefined ? state : addNotice(state, 'info', describeEvent(event))
    case 'McpServerUpdate':
      return event.error === undefined ? state : addNotice(state, 'warning', describeEvent(event))
    case 'Notice':
      return addNotice(state, event.tone, event.text)
    case 'Answered':
      return { ...state, answeredHere: new Set([...state.answeredHere, event.id]) }
    case 'Unanswered':
      return { ...state, answeredHere: new Set([...state.answeredHere].filter((id) => id !== event.id)) }
    case 'Connection':
      return changeConnection(state, event)
    case 'Pending':
      return { ...state, ...event.pending, isLive: true }
    case 'Viewed':
      return { ...state, ...event.view, runningSince: event.view.status === 'running' ? now : state.runningSince }
    case 'Cleared':
      return { ...state, items: [] }
    default:
      return state
  }
}

function addUserMessage(state: ChatState, { content, sender }: EventOf<'UserMessage'>): ChatState {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
  const images = content.filter(({ type }) => type === 'image').length
  return add(state, { kind: 'user', text, images, ...(sender !== undefined && { sender }) })
}

function addAnswer(state: ChatState, event: EventOf<'AssistantMessage'>): ChatState {
  const counted = withUsage({ ...state, activity: undefined }, event.model, event.usage, event.cost_usd)
  if (event.text.trim() === '' && !hasAnswer(counted, event.message_id)) return counted
  return changeAnswer(counted, event.message_id, false, (answer) => ({
    ...answer,
    ...(event.agent_name !== undefined && { agent: event.agent_name }),
    parts: [event.text],
    isComplete: true,
  }))
}

function addCall(state: ChatState, { tool_use_id, name, input, agent_name }: EventOf<'ToolUse'>): ChatState {
  const agent = agent_name === undefined ? {} : { agent: agent_name }
  return changeCall(state, tool_use_id, (call) => ({ ...call, name, input: input ?? null, ...agent }), name)
}

function addResult(state: ChatState, event: EventOf<'ToolResult'>): ChatState {
  if (!hasCall(state, event.tool_use_id)) return state
  const { is_error: isError, duration_ms: durationMs } = event
  return changeCall(state, event.tool_use_id, (call) => ({
    ...call,
    output: '',
    result: { text: resultOf(event), isError, durationMs },
  }))
}

function changeStatus(state: ChatState, { status, reason }: EventOf<'StatusUpdate'>, now: number): ChatState {
  const isQueued = status === 'running' && reason === QUEUED
  const runningSince = status === 'running' ? (state.runningSince ?? now) : undefined
  return { ...state, status, isQueued, runningSince, activity: undefined }
}

function changeConfig(state: ChatState, changes: Record<string, unknown>): ChatState {
  const { permission_mode: mode, llm_config: llm } = changes
  const model = typeof llm === 'object' && llm !== null && 'model' in llm ? llm.model : undefined
  return {
    ...state,
    ...(typeof mode === 'string' && { mode }),
    ...(typeof model === 'string' && { model }),
  }
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
}

function endRun(state: ChatState, event: EventOf<'Result'>): ChatState {
  if (event.parent_tool_use_id !== undefined) return state
  const text = ENDS[event.stop_reason]
  const ended = { ...state, lastRunMs: event.duration_ms, runningSince: undefined, activity: undefined }
  return text === undefined ? ended : addNotice(ended, 'warning', text)
}

function changeConnection(state: ChatState, event: Extract<LocalEvent, { type: 'Connection' }>): ChatState {
  if (state.isConnected === event.isConnected) return state
  const text = event.isConnected
    ? 'Connected again.'
    : `The connection to the server is lost; connecting again. ${event.reason ?? ''}`.trimEnd()
  return addNotice({ ...state, isConnected: event.isConnected }, event.isConnected ? 'info' : 'warning', text)
}
