/** The next request of an agent to its model. */
import type { Llm, LlmRequest, ModelTool } from '../../llm/llm.ts'
import type { AgentContext } from '../loop-context.ts'

/** `messages`: others than those of the history, if hooks have rewritten them. */
export function requestOf(
  { history, output }: AgentContext,
  tools: readonly ModelTool[],
  messages = history.messagesToSend(),
): LlmRequest {
  const { system, callIds: takenIds } = history
  return { system, messages, tools, takenIds, ...(output && { outputSchema: output.schema }) }
}

export const NO_TOOLS: readonly ModelTool[] = []

export const toolsFor = ({ withoutTools, toolCalls }: AgentContext, { model }: Llm): readonly ModelTool[] =>
  withoutTools.has(model) ? NO_TOOLS : toolCalls.descriptions
