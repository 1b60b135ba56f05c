/** The part of the fold for events of this client, which the server does not know. */
import type { ChatState, Item, LocalEvent } from './chat-state.ts'
import { addSending, changeDelivery } from './delivery.ts'
import { addNotice, changeCall, hasCall } from './items.ts'
import { afterReading } from './unread.ts'
import { endCommand, startCommand } from './shell-command.ts'

export function reduceLocal(state: ChatState, event: LocalEvent, now: number): ChatState {
  switch (event.type) {
    case 'Notice':
      return addNotice(state, event.tone, event.text)
    case 'Sending':
      return addSending(state, event)
    case 'Sent':
    case 'NotSent':
      return changeDelivery(state, event)
    case 'CommandStarted':
      return startCommand(state, event)
    case 'CommandEnded':
      return endCommand(state, event)
    case 'Located':
      return hasCall(state, event.id)
        ? changeCall(state, event.id, (call) => ({ ...call, starts: event.starts }))
        : state
    case 'Answered':
      return { ...state, answeredHere: new Set([...state.answeredHere, event.id]) }
    case 'Unanswered':
      return { ...state, answeredHere: new Set([...state.answeredHere].filter((id) => id !== event.id)) }
    case 'Connection':
      return changeConnection(state, event)
    case 'Pending':
      return { ...state, requests: event.requests, isLive: true }
    case 'Viewed':
      return { ...state, ...event.view, runningSince: event.view.status === 'running' ? now : state.runningSince }
    case 'Read':
      return afterReading(state, event.seq)
    case 'Cleared':
      return { ...state, items: [] }
    case 'Ended':
      return { ...state, requests: [], isConnected: false, status: 'idle', runningSince: undefined }
    default:
      return event satisfies never
  }
}

const LOST = 'The connection to the server is lost; connecting again.'
const CONNECTED = 'The connection was lost. Connected again.'

/** A connection that is lost again and again leaves one line. */
function changeConnection(state: ChatState, event: Extract<LocalEvent, { type: 'Connection' }>): ChatState {
  const { isConnected, reason = '' } = event
  if (state.isConnected === isConnected) return state
  if (!isConnected) return addNotice({ ...state, isConnected }, 'warning', `${LOST} ${reason}`.trimEnd())
  const items = isNotice(state.items.at(-1), LOST) ? state.items.slice(0, -1) : state.items
  const connectedState = { ...state, items, isConnected }
  return isNotice(items.at(-1), CONNECTED) ? connectedState : addNotice(connectedState, 'info', CONNECTED)
}

const isNotice = (item: Item | undefined, text: string): boolean =>
  item?.kind === 'notice' && item.text.startsWith(text)
