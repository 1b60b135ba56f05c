/** What the chat shows after the conversation went back: the messages before that event, and that it happened. */
import type { EventOf } from '../../../contract/events/event.ts'
import type { ChatState } from './chat-state.ts'
import { addNotice } from './items.ts'

/** The note says it if nothing that is shown has a place in the log, because no message comes after the event. */
export function afterRewind(state: ChatState, { to_seq, seq, restored }: EventOf<'Rewound'>): ChatState {
  const at = state.items.findIndex((item) => item.kind === 'user' && (item.event?.seq ?? 0) > to_seq)
  const items = at < 0 ? state.items : state.items.slice(0, at)
  const { context_tokens: contextTokens } = restored
  const back = { ...state, items, contextTokens, requests: [], readThrough: seq, activity: undefined }
  return addNotice(
    back,
    'info',
    at < 0
      ? `The conversation is back at event ${to_seq}: what came after it does not hold.`
      : 'The conversation is back at this point.',
  )
}
