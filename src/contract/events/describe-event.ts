/** Describes an event in one line, for the terminal and the server's log. */
import type { Event, EventOf } from './event.ts'
import { inputText, outputText, textOf } from '../values/output-text.ts'
import { lineOfAnswer, lineOfRequest } from '../requests/request-kinds.ts'

/** Longer lines are cut: the log has the rest. */
const MAX_CHARS = 200

/** Characters read of a text that may be megabytes; much of it may be spaces. */
const MAX_READ_CHARS = 10_000

export function describeEvent(event: Event): string {
  switch (event.type) {
    case 'SystemInit':
      return `conversation ${event.session_id} in ${event.cwd}`
    case 'UserMessage':
      return `user: ${short(event.content.map((part) => (part.type === 'text' ? part.text : '[image]')).join(' '))}`
    case 'MessageWithdrawn':
      return `message ${event.message_seq} was withdrawn`
    case 'FilesRestored':
      return `files restored as of event ${event.to_seq}`
    case 'WorkspaceSnapshot':
      return `files kept, as of event ${event.as_of_seq}`
    case 'Rewound':
      return `rewound to event ${event.to_seq}`
    case 'AssistantMessage':
      return `agent: ${short(event.text || `[${event.tool_use_ids.length} tool calls]`)}`
    case 'ToolUse':
      return `${event.name}: ${short(inputText(event.input))}`
    case 'ToolResult':
      return event.is_error
        ? `failed (${event.error_type}): ${short(event.error_message ?? '')}`
        : `result: ${short(outputText(event.output)) || 'no output'}`
    case 'RequestOpened':
      return short(lineOfRequest(event))
    case 'RequestAnswered':
      return `${short(lineOfAnswer(event))} (${event.answered_by})`
    case 'RequestClosed':
      return `the ${event.kind} request ${event.request_id} was closed (${event.reason})`
    case 'StatusUpdate':
      return `${event.previous_status} -> ${event.status} (${event.reason})`
    case 'ConfigUpdate':
      return `configured: ${Object.keys(event.changes).join(', ')}`
    case 'SecretsUpdate':
      return `secrets: ${[...event.added, ...event.removed.map((name) => `-${name}`)].join(', ')}`
    case 'FileUpdate':
      return `${event.action}: ${short(event.path)}`
    case 'CommandResult':
      return `command (${event.status}, exit code ${event.exit_code}): ${short(event.command)}`
    case 'ProcessesEnded':
      return `ended with their instance: ${event.sessions.length} shells, ${event.processes} processes`
    case 'TaskUpdate':
      return `task ${event.task_id}: ${event.status}${progressOf(event)} (${short(event.title)})`
    case 'ForkedFrom':
      return `forked from ${event.from_conversation_id} at ${event.from_seq}`
    case 'ClientEvent':
      return `${event.name}: ${short(textOf(event.data ?? ''))}`
    case 'NetworkAccess':
      return `network: ${event.allowed ? 'allowed' : 'refused'} ${event.host}${event.port === undefined ? '' : `:${event.port}`} ${event.count} times (${event.reason})`
    case 'HookEvent':
      return `hook ${event.hook_point} ${short(event.name)}: ${event.action}${event.message === undefined ? '' : ` (${short(event.message)})`}`
    case 'McpServerUpdate':
      return `MCP server ${event.server}: ${event.status}${detailOf(event.authorization_url ?? (event.error && short(event.error)))}`
    case 'ModelRetry':
      return `model request failed (${event.error_type}), retry ${event.retry} of ${event.max_retries} in ${event.wait_ms} ms${event.next_model === undefined ? '' : ` with ${event.next_model}`}: ${short(event.message)}`
    case 'OutputRequest':
      return event.fault === undefined ? 'output requested' : `output requested again: ${short(event.fault)}`
    case 'Condensation':
      return `compacted (${event.trigger}): ${event.tokens_before} -> ${event.tokens_after} tokens`
    case 'SubagentStart':
      return `${event.agent_name} begins: ${short(event.description)}`
    case 'ErrorEvent':
      return `error (${event.error_type}): ${short(event.message)}`
    case 'Result':
      return `done: ${event.stop_reason} after ${event.steps} steps, ${Math.round(event.duration_ms)} ms`
    default:
      return event satisfies never
  }
}

const progressOf = ({ progress }: EventOf<'TaskUpdate'>) => (progress ? ` ${progress.done}/${progress.total}` : '')

function short(text: string): string {
  // The beginning is enough, and no pattern begins with spaces: each position in a long run of them would be a separate
  // start.
  const lines = text.slice(0, MAX_READ_CHARS).trim().split(/\n\s*/)
  const line = lines.map((each) => each.trimEnd()).join(' ⏎ ')
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS)}…` : line
}

const detailOf = (text: string | undefined): string => (text === undefined ? '' : ` (${text})`)
