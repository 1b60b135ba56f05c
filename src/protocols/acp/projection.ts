/**
 * Projects the events of a conversation to the updates of an ACP session. Live events and those of a log give the same
 * messages and calls: what was already sent of a message is left out when the whole message arrives.
 */
import type { ContentBlock, SessionUpdate, ToolCallContent, ToolCallStatus, PlanEntry } from '@agentclientprotocol/sdk'
import type { Event, EventOf } from '../../contract/events/event.ts'
import { describeEvent } from '../../contract/events/describe-event.ts'
import { partsOfOutput } from '../../contract/values/output-text.ts'
import type { AssistantDelta, TransientEvent } from '../../contract/events/transient-event.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { joinReasoning } from '../../contract/values/message.ts'
import { resultOf } from '../../contract/values/output-text.ts'
import type { EditorCall } from './call-form.ts'
import { fence, formOfCall, textContent } from './call-form.ts'
import { z } from 'zod'

type Options = {
  readonly workdir: string
  /** The client has shown the messages that it has sent itself. */
  readonly isOwn: (event: EventOf<'UserMessage'>) => boolean
  readonly showsNotices: boolean
}

/** What was sent of a message that is being written. */
type SentText = { text: string; reasoning: string; readonly calls: Set<string> }
type Call = { readonly form: EditorCall; output: string; shownAt: number }

/** How much of the output of a running command is shown, in characters, and how often, in milliseconds. */
const MAX_LIVE_CHARS = 16_384
const LIVE_INTERVAL_MS = 250

/** Their calls are shown as something else: a plan, and a message. */
const HIDDEN: ReadonlySet<string> = new Set(['TaskTracker', 'Finish'])

export class Projection {
  readonly #options: Options
  readonly #sent = new Map<string, SentText>()
  /** Calls without a result. */
  readonly #calls = new Map<string, Call>()

  constructor(options: Options) {
    this.#options = options
  }

  take(event: Event | TransientEvent): SessionUpdate[] {
    switch (event.type) {
      case 'UserMessage':
        return this.#options.isOwn(event) ? [] : userChunks(event)
      case 'AssistantDelta':
        return event.parent_tool_use_id === undefined ? this.#addDelta(event) : []
      case 'AssistantAborted':
      case 'ModelRetry':
        return [...this.#abort(event.message_id), ...this.#noticeOf(event)]
      case 'AssistantMessage':
        return event.parent_tool_use_id === undefined ? this.#addAnswer(event) : []
      case 'ToolUse':
        return this.#addCall(event)
      case 'ToolOutputDelta':
        return this.#addOutput(event)
      case 'ToolResult':
        return this.#addResult(event)
      case 'Result':
        return event.parent_tool_use_id === undefined ? [...this.#sent.keys()].flatMap((id) => this.#abort(id)) : []
      case 'RequestAnswered':
        return event.kind === 'permission' ? allowedCalls(event.answer.decisions) : []
      case 'ConfigUpdate':
        return changesOfSession(event)
      case 'Condensation':
      case 'Rewound':
        return this.#noticeOf(event)
      default:
        return []
    }
  }

  #addDelta(delta: AssistantDelta): SessionUpdate[] {
    const sentText = this.#sentOf(delta.message_id)
    const { message_id, offset, text_delta, reasoning_delta, tool_use_id, tool_name } = delta
    if (text_delta !== undefined) {
      const text = unsentOf(sentText.text, offset, text_delta)
      sentText.text += text
      return chunk('agent_message_chunk', message_id, text)
    }
    if (reasoning_delta !== undefined) {
      const text = unsentOf(sentText.reasoning, offset, reasoning_delta)
      sentText.reasoning += text
      return chunk('agent_thought_chunk', message_id, text)
    }
    const isNew = tool_use_id !== undefined && tool_name !== undefined && !sentText.calls.has(tool_use_id)
    if (!isNew || HIDDEN.has(tool_name)) return []
    sentText.calls.add(tool_use_id)
    const { kind } = formOfCall(tool_name, {}, this.#options.workdir, undefined)
    return [
      {
        sessionUpdate: 'tool_call',
        toolCallId: tool_use_id,
        name: tool_name,
        title: tool_name,
        kind,
        status: 'pending',
      },
    ]
  }

  #addAnswer({ message_id, text, content, tool_use_ids }: EventOf<'AssistantMessage'>): SessionUpdate[] {
    const { text: sentText, reasoning: sentReasoning, calls } = this.#sentOf(message_id)
    const [unsentText, unsentThought] = [restOf(sentText, text), restOf(sentReasoning, joinReasoning(content))]
    const unansweredIds = [...calls].filter((id) => !tool_use_ids.includes(id))
    this.#sent.delete(message_id)
    for (const id of tool_use_ids) if (calls.has(id)) this.#announced.add(id)
    return [
      ...chunk('agent_thought_chunk', message_id, unsentThought),
      ...chunk('agent_message_chunk', message_id, unsentText),
      ...unansweredIds.map(failedCall),
    ]
  }

  /** Calls that the client knows from their input alone. */
  readonly #announced = new Set<string>()

  #addCall({ tool_use_id, name, input, agent_name }: EventOf<'ToolUse'>): SessionUpdate[] {
    const form = formOfCall(name, input, this.#options.workdir, agent_name)
    this.#calls.set(tool_use_id, { form, output: '', shownAt: 0 })
    if (name === 'Finish' && agent_name === undefined)
      return chunk('agent_message_chunk', tool_use_id, messageIn(input))
    if (HIDDEN.has(name)) return []
    const update = { toolCallId: tool_use_id, ...form, status: 'in_progress' as const }
    return [{ sessionUpdate: this.#announced.delete(tool_use_id) ? 'tool_call_update' : 'tool_call', ...update }]
  }

  /** The whole output follows with the result, so that some pieces can be left out. */
  #addOutput({ tool_use_id, text }: Extract<TransientEvent, { type: 'ToolOutputDelta' }>): SessionUpdate[] {
    const call = tool_use_id === undefined ? undefined : this.#calls.get(tool_use_id)
    if (tool_use_id === undefined || !call) return []
    call.output = (call.output + text).slice(-MAX_LIVE_CHARS)
    const now = performance.now()
    if (call.shownAt > 0 && now - call.shownAt < LIVE_INTERVAL_MS) return []
    call.shownAt = now
    return [updateOf(tool_use_id, 'in_progress', [textContent(fence(call.output.trimEnd()))])]
  }

  #addResult(event: EventOf<'ToolResult'>): SessionUpdate[] {
    const { tool_use_id, is_error, output } = event
    const call = this.#calls.get(tool_use_id)
    this.#calls.delete(tool_use_id)
    const name = call?.form.name ?? ''
    if (name === 'TaskTracker') return is_error ? [] : planOf(output)
    if (HIDDEN.has(name)) return []
    const changes = is_error ? [] : (call?.form.content ?? [])
    const content = changes.length > 0 ? changes : resultContent(event, call?.form)
    return [{ ...updateOf(tool_use_id, is_error ? 'failed' : 'completed', content), rawOutput: output }]
  }

  /** Clients cannot take text back: it is said that the answer begins again. */
  #abort(messageId: string): SessionUpdate[] {
    const sentText = this.#sent.get(messageId)
    this.#sent.delete(messageId)
    if (!sentText) return []
    const wasSeen = sentText.text.trim() !== ''
    return [
      ...chunk('agent_message_chunk', messageId, wasSeen ? BROKEN_OFF : ''),
      ...[...sentText.calls].map(failedCall),
    ]
  }

  #noticeOf(event: Event | TransientEvent): SessionUpdate[] {
    if (!this.#options.showsNotices || !('seq' in event)) return []
    return [{ sessionUpdate: 'notice', severity: 'info', title: describeEvent(event) }]
  }

  #sentOf(messageId: string): SentText {
    const sentText = this.#sent.get(messageId) ?? { text: '', reasoning: '', calls: new Set() }
    this.#sent.set(messageId, sentText)
    return sentText
  }
}

const BROKEN_OFF = '\n\n*(This answer was broken off.)*\n\n'

type ChunkKind = 'agent_message_chunk' | 'agent_thought_chunk'

export const chunk = (sessionUpdate: ChunkKind, messageId: string, text: string): SessionUpdate[] =>
  text === '' ? [] : [{ sessionUpdate, messageId, content: { type: 'text', text } }]

/** A new connection sends again what was said of a message. */
const unsentOf = (sentText: string, offset: number, text: string): string =>
  text.slice(Math.max(0, sentText.length - offset))

/** The whole text where the client has seen another one. */
const restOf = (sentText: string, whole: string): string =>
  whole.startsWith(sentText) ? whole.slice(sentText.length) : whole

const failedCall = (id: string): SessionUpdate => updateOf(id, 'failed', [])

const updateOf = (toolCallId: string, status: ToolCallStatus, content: ToolCallContent[]) =>
  ({ sessionUpdate: 'tool_call_update', toolCallId, status, content }) as const

/** The request has shown them as pending. */
const allowedCalls = (decisions: readonly { readonly tool_use_id: string; readonly behavior: string }[]) =>
  decisions.flatMap(({ tool_use_id: toolCallId, behavior }) =>
    behavior === 'allow' ? [{ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' } as const] : [],
  )

function resultContent(event: EventOf<'ToolResult'>, form: EditorCall | undefined): ToolCallContent[] {
  const parts = partsOfOutput(event.output)
  if (parts && !event.is_error) return parts.map((part) => ({ type: 'content', content: blockOf(part) }))
  const text = resultOf(event).trimEnd()
  if (text === '') return []
  return [textContent(form?.kind === 'think' || form?.kind === 'fetch' ? text : fence(text))]
}

const userChunks = ({ id, content }: EventOf<'UserMessage'>): SessionUpdate[] =>
  content.map((part) => ({ sessionUpdate: 'user_message_chunk', messageId: id, content: blockOf(part) }))

const blockOf = (part: UserPart): ContentBlock =>
  part.type === 'text'
    ? { type: 'text', text: part.text }
    : { type: 'image', mimeType: part.media_type, data: part.data }

function messageIn(input: unknown): string {
  const { message }: { readonly message?: unknown } = Object(input)
  return typeof message === 'string' ? message : ''
}

function changesOfSession({ changes: { title, permission_mode: mode } }: EventOf<'ConfigUpdate'>): SessionUpdate[] {
  return [
    ...(typeof title === 'string' ? [{ sessionUpdate: 'session_info_update', title } as const] : []),
    ...(typeof mode === 'string' ? [{ sessionUpdate: 'current_mode_update', currentModeId: mode } as const] : []),
  ]
}

const TaskList = z.object({
  task_list: z.array(z.object({ title: z.string(), status: z.enum(['todo', 'in_progress', 'done']).catch('todo') })),
})

const STATUSES = { todo: 'pending', in_progress: 'in_progress', done: 'completed' } as const

/** `output`: that of the tool `TaskTracker`. */
function planOf(output: unknown): SessionUpdate[] {
  const { success, data } = TaskList.safeParse(output)
  if (!success) return []
  const entries = data.task_list.map(({ title, status }): PlanEntry => ({
    content: title,
    status: STATUSES[status],
    priority: 'medium',
  }))
  return [{ sessionUpdate: 'plan', entries }]
}
