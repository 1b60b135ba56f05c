/** Messages that are stored, and that the agent has not read: they can be taken back. */
import type { ChatState, UserItem } from './chat-state.ts'

export type UnreadMessage = UserItem & { readonly event: NonNullable<UserItem['event']> }

/** The oldest first. A model request that has them may be being answered, which only the server knows. */
export const unreadMessages = ({ items, readThrough }: ChatState): UnreadMessage[] =>
  items.filter((item): item is UnreadMessage => item.kind === 'user' && (item.event?.seq ?? 0) > readThrough)

/** The number of messages that were sent while the agent worked, and that it has not begun to answer. */
export function waitingMessages(state: ChatState): number {
  if (state.status !== 'running') return 0
  const began = state.items.findLastIndex(({ kind }) => kind === 'answer')
  return unreadMessages(state).filter((item) => item.steers === true && state.items.indexOf(item) > began).length
}

export const withoutMessage = (state: ChatState, seq: number): ChatState => ({
  ...state,
  items: state.items.filter((item) => item.kind !== 'user' || item.event?.seq !== seq),
})

/** The agent has read everything up to this event. */
export const afterReading = (state: ChatState, seq: number): ChatState => ({
  ...state,
  readThrough: Math.max(state.readThrough, seq),
})
