/** Tokens and cost of the conversation. */
import type { Usage } from '../../../contract/values/message.ts'
import { addCost, addUsage, NO_USAGE } from '../../../contract/values/message.ts'
import type { ChatState } from './chat-state.ts'

export function withUsage(
  state: ChatState,
  model: string | undefined,
  usage: Usage | undefined,
  costUsd: number | undefined,
): ChatState {
  if (model === undefined || usage === undefined) return state
  const usedTokens = { ...state.usage, [model]: addUsage(state.usage[model] ?? NO_USAGE, usage) }
  return { ...state, usage: usedTokens, costUsd: addCost(state.costUsd, costUsd) }
}

export const tokensOf = ({ usage }: Pick<ChatState, 'usage'>): number =>
  Object.values(usage).reduce((sum, { input_tokens, output_tokens }) => sum + input_tokens + output_tokens, 0)
