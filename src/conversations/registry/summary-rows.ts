/** Conversations as rows of a list, from memory alone: nothing is opened or read. */
import type { ConversationSummary, CurrentCall } from '../../contract/conversations/summary.ts'
import { titleOf } from '../../contract/events/call-title.ts'
import type { ListedState, StoredEvent } from '../../events/event-store.ts'
import { openRequests } from '../../state/open-requests.ts'
import type { State } from '../../state/state.ts'
import { fold } from '../../state/state.ts'
import { isRunQueued } from '../../state/view.ts'
import type { Summary } from '../../storage/storage.ts'
import type { Conversation } from '../conversation.ts'
import { summarize } from './listing.ts'

const MAX_TARGET_CHARS = 200

/** `isAttended`: a person has it open in a chat. */
export function summaryRow(summary: Summary, isAttended: boolean): ConversationSummary {
  const { currentCall: call, isQueued } = summary
  const { id, status, title, preview, lastWords, waiting, labels, userId, model, costUsd, isArchived } = summary
  return {
    id,
    ...(title !== undefined && { title }),
    ...(preview && { preview }),
    ...(lastWords && { last_words: lastWords }),
    status,
    ...(isQueued && status === 'running' && { queued: true }),
    ...(waiting > 0 && { waiting }),
    ...(isAttended && { attended: true }),
    ...(labels.length > 0 && { labels: [...labels] }),
    ...(userId !== undefined && { user_id: userId }),
    ...(model !== undefined && { model }),
    ...(costUsd !== undefined && { cost_usd: costUsd }),
    ...(isArchived && { archived: true }),
    ...(call && status === 'running' && { current_call: call }),
    last_seq: summary.lastSeq,
    created_at: new Date(summary.createdAt).toISOString(),
    updated_at: new Date(summary.updatedAt).toISOString(),
  }
}

/** Adds what only an open conversation knows: the requests that calls hold, and the current call. */
export function liveSummaryRow({ state, requests }: Conversation, isAttended: boolean): ConversationSummary {
  const waiting = requests.list().length
  return summaryRow({ ...summarize(state), waiting, ...workOf(state) }, isAttended)
}

/** Returns what other instances show of a conversation that this one has: also what waits only while it is open. */
export function sharedSummary(state: State): Summary {
  return { ...summarize(state, openRequests), ...workOf(state) }
}

/** The same as a value that is stored with each append. */
export class ListedConversationState implements ListedState {
  readonly #state: State

  constructor(state: State) {
    this.#state = state
  }

  after(events: readonly StoredEvent[]): ListedConversationState {
    return new ListedConversationState(events.reduce((state, { event }) => fold(state, event), this.#state))
  }

  get row(): object {
    const { lastSeq: _, updatedAt: __, ...row } = sharedSummary(this.#state)
    return { version: this.#state.version, ...row }
  }
}

/** What only the instance that runs it knows at once. */
const workOf = (state: State) => ({ currentCall: currentCall(state), ...(isRunQueued(state) && { isQueued: true }) })

/** Prefers the call of a subagent: its caller only waits for it. */
function currentCall({ status, openCalls, subagents }: State): CurrentCall | undefined {
  if (status !== 'running') return undefined
  const call = [...subagents.flatMap(({ agent }) => agent.openCalls), ...openCalls].at(0)
  if (!call) return undefined
  const target = titleOf(call.name, call.input).slice(0, MAX_TARGET_CHARS)
  return { tool_use_id: call.toolUseId, name: call.name, ...(target !== '' && { target }) }
}
