/** Text that arrives while it is written: answers, the input of calls, and the output of running tools. */
import type { AssistantDelta, TransientEvent } from '../../../contract/events/transient-event.ts'
import type { ChatState } from './chat-state.ts'
import { changeAnswer, changeCall } from './items.ts'
import { runningCommand } from './shell-command.ts'

/** Characters kept of what a running tool prints. */
const MAX_LIVE_OUTPUT = 8000

export function addDelta(state: ChatState, delta: AssistantDelta): ChatState {
  if (delta.text_delta !== undefined) return addText(state, delta, delta.text_delta, false)
  if (delta.reasoning_delta !== undefined)
    return { ...addText(state, delta, delta.reasoning_delta, true), activity: 'Thinking' }
  return addToolInput(state, delta)
}

function addText(state: ChatState, delta: AssistantDelta, text: string, isReasoning: boolean): ChatState {
  const { message_id, index, offset, agent_name: agent } = delta
  const writtenState = changeAnswer(state, message_id, isReasoning, (answer) => {
    if (answer.isComplete) return answer
    const parts = Array.from({ length: Math.max(answer.parts.length, index + 1) }, (_, at) => answer.parts[at] ?? '')
    return {
      ...answer,
      ...(agent !== undefined && { agent }),
      parts: parts.with(index, (parts[index] ?? '').slice(0, offset) + text),
    }
  })
  return writtenState.activity === undefined ? writtenState : { ...writtenState, activity: undefined }
}

function addToolInput(state: ChatState, { tool_use_id, tool_name, tool_input_delta = '', offset }: AssistantDelta) {
  if (tool_use_id === undefined || tool_name === undefined) return state
  return changeCall(
    state,
    tool_use_id,
    (call) => (call.input === undefined ? { ...call, written: offset + tool_input_delta.length } : call),
    tool_name,
  )
}

export function addToolOutput(
  state: ChatState,
  { tool_use_id, text }: Extract<TransientEvent, { type: 'ToolOutputDelta' }>,
): ChatState {
  // The id of a command is known when it has ended.
  const id = tool_use_id ?? runningCommand(state)?.id
  if (id === undefined) return state
  return changeCall(state, id, (call) =>
    call.result ? call : { ...call, output: (call.output + text).slice(-MAX_LIVE_OUTPUT) },
  )
}
