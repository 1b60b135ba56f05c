/** Tokens and cost of the conversation. */
import type { Usage } from '../../../contract/values/message.ts'
import { addCost, countUsage } from '../../../contract/values/message.ts'
import type { ChatState } from './chat-state.ts'

export function withUsage(
  state: ChatState,
  model: string | undefined,
  usage: Usage | undefined,
  costUsd: number | undefined,
): ChatState {
  if (model === undefined || usage === undefined) return state
  return { ...state, usage: countUsage(state.usage, model, usage), costUsd: addCost(state.costUsd, costUsd) }
}
