/** Changes of the list of items: each returns a new list, in which unchanged items are the same objects. */
import type { AnswerItem, CallItem, ChatState, Item, NoticeItem, Tone } from './chat-state.ts'

/** The oldest items are dropped in one step, because that redraws everything. The log has all of them. */
const MAX_ITEMS = 600
const KEPT_ITEMS = 300

export function add(state: ChatState, item: Item): ChatState {
  if (state.items.length < MAX_ITEMS) return { ...state, items: [...state.items, item] }
  const note: NoticeItem = { kind: 'notice', tone: 'info', text: 'Earlier parts of this conversation are not shown.' }
  return { ...state, items: [note, ...state.items.slice(-KEPT_ITEMS), item] }
}

export const addNotice = (state: ChatState, tone: Tone, text: string): ChatState =>
  add(state, { kind: 'notice', tone, text })

/** Changes the call, or adds it first. With `name` a call that has its result is another one: models use ids again. */
export function changeCall(state: ChatState, id: string, change: (call: CallItem) => CallItem, name = ''): ChatState {
  const at = state.items.findLastIndex((item) => item.kind === 'call' && item.id === id)
  const foundItem = state.items[at]
  if (foundItem?.kind === 'call' && (name === '' || !foundItem.result))
    return { ...state, items: state.items.with(at, change(foundItem)) }
  return add(state, change({ kind: 'call', id, name, input: undefined, written: 0, output: '' }))
}

export const hasCall = (state: ChatState, id: string): boolean =>
  state.items.some((item) => item.kind === 'call' && item.id === id)

/** Changes the answer, or adds it first. */
export function changeAnswer(
  state: ChatState,
  messageId: string,
  isReasoning: boolean,
  change: (answer: AnswerItem) => AnswerItem,
): ChatState {
  const at = state.items.findLastIndex((item) => isAnswer(item, messageId) && item.isReasoning === isReasoning)
  const foundItem = state.items[at]
  if (foundItem?.kind === 'answer') return { ...state, items: state.items.with(at, change(foundItem)) }
  return add(state, change({ kind: 'answer', messageId, parts: [], isReasoning, isComplete: false }))
}

/** Removes what a failed attempt has written so far. */
export function dropAnswer(state: ChatState, messageId: string): ChatState {
  const items = state.items.filter(
    (item) => !isAnswer(item, messageId) && !(item.kind === 'call' && item.input === undefined),
  )
  return items.length === state.items.length ? state : { ...state, items }
}

export const hasAnswer = (state: ChatState, messageId: string): boolean =>
  state.items.some((item) => isAnswer(item, messageId) && !item.isReasoning)

const isAnswer = (item: Item, messageId: string): item is AnswerItem =>
  item.kind === 'answer' && item.messageId === messageId
