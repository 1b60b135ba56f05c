/** The next request of an agent to its model. */
import type { Llm, LlmRequest, ModelTool } from '../../llm/llm.ts'
import type { AgentContext } from '../loop-context.ts'

/** The next request, as it is without hooks. */
export function requestOf({ history, output }: AgentContext, tools: readonly ModelTool[]): LlmRequest {
  const messages = history.messagesToSend()
  return { system: history.system, messages, tools, ...restOf({ history, output }) }
}

export const NO_TOOLS: readonly ModelTool[] = []

export const toolsFor = ({ withoutTools, toolCalls }: AgentContext, { model }: Llm): readonly ModelTool[] =>
  withoutTools.has(model) ? NO_TOOLS : toolCalls.descriptions

/** The fields of a request besides its prompt, messages and tools. */
export const restOf = ({ output, history: { callIds } }: Pick<AgentContext, 'output' | 'history'>) => {
  return { takenIds: callIds, ...(output && { outputSchema: output.schema }) }
}
