/** Conversations as rows of a list, from memory alone: nothing is opened or read. */
import type { ConversationSummary, CurrentCall } from '../../contract/conversations/summary.ts'
import { titleOf } from '../../contract/events/call-title.ts'
import type { State } from '../../state/state.ts'
import type { Summary } from '../../storage/storage.ts'
import type { Conversation } from '../conversation.ts'
import { summarize } from './listing.ts'

const MAX_TARGET_CHARS = 200

/** `isAttended`: a person has it open in a chat. */
export function summaryRow(summary: Summary, isAttended: boolean): ConversationSummary {
  const { id, status, title, preview, lastWords, waiting, labels, userId, model, costUsd, isArchived } = summary
  return {
    id,
    ...(title !== undefined && { title }),
    ...(preview && { preview }),
    ...(lastWords && { last_words: lastWords }),
    status,
    ...(waiting > 0 && { waiting }),
    ...(isAttended && { attended: true }),
    ...(labels.length > 0 && { labels: [...labels] }),
    ...(userId !== undefined && { user_id: userId }),
    ...(model !== undefined && { model }),
    ...(costUsd !== undefined && { cost_usd: costUsd }),
    ...(isArchived && { archived: true }),
    last_seq: summary.lastSeq,
    created_at: new Date(summary.createdAt).toISOString(),
    updated_at: new Date(summary.updatedAt).toISOString(),
  }
}

/** Adds what only an open conversation knows: the requests that calls hold, and the current call. */
export function liveSummaryRow({ state, requests }: Conversation, isAttended: boolean): ConversationSummary {
  const call = state.status === 'running' ? currentCall(state) : undefined
  const row = summaryRow({ ...summarize(state), waiting: requests.list().length }, isAttended)
  return { ...row, ...(call && { current_call: call }) }
}

/** Prefers the call of a subagent: its caller only waits for it. */
function currentCall({ openCalls, subagents }: State): CurrentCall | undefined {
  const call = [...subagents.flatMap(({ agent }) => agent.openCalls), ...openCalls].at(0)
  if (!call) return undefined
  const target = titleOf(call.input).slice(0, MAX_TARGET_CHARS)
  return { tool_use_id: call.toolUseId, name: call.name, ...(target !== '' && { target }) }
}
