/** Messages that this client is sending: shown at once, and replaced by the stored message. */
import type { ChatState, Item, LocalEvent, UserItem } from './chat-state.ts'
import { startOf } from './bounded.ts'
import { add } from './items.ts'

type Sending = Extract<LocalEvent, { type: 'Sending' }>
type Outcome = Extract<LocalEvent, { type: 'Sent' | 'NotSent' }>

/** A message that is sent again replaces the one that failed. */
export function addSending(state: ChatState, { key, text, images }: Sending): ChatState {
  return add(withoutSending(state, key), { kind: 'user', text: startOf(text), images, key, delivery: 'sending' })
}

/** The stored message comes with the events: it can be here already, or arrive later. */
export function changeDelivery(state: ChatState, { type, key }: Outcome): ChatState {
  const delivery = type === 'Sent' ? undefined : 'failed'
  return { ...state, items: state.items.map((item) => (isSending(item, key) ? { ...item, delivery } : item)) }
}

export function withoutSending(state: ChatState, key: string | undefined): ChatState {
  if (key === undefined || !hasSending(state, key)) return state
  return { ...state, items: state.items.filter((item) => !isSending(item, key)) }
}

const hasSending = ({ items }: ChatState, key: string): boolean => items.some((item) => isSending(item, key))

const isSending = (item: Item, key: string): item is UserItem => item.kind === 'user' && item.key === key
