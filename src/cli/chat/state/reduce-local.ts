/** The part of the fold for events of this client, which the server does not know. */
import type { ChatState, LocalEvent } from './chat-state.ts'
import { addSending, changeDelivery } from './delivery.ts'
import { addNotice } from './items.ts'

const NOTHING_WAITS = { approvals: [], questions: [], networkApprovals: [] }

export function reduceLocal(state: ChatState, event: LocalEvent, now: number): ChatState {
  switch (event.type) {
    case 'Notice':
      return addNotice(state, event.tone, event.text)
    case 'Sending':
      return addSending(state, event)
    case 'Sent':
    case 'NotSent':
      return changeDelivery(state, event)
    case 'Answered':
      return { ...state, answeredHere: new Set([...state.answeredHere, event.id]) }
    case 'Unanswered':
      return { ...state, answeredHere: new Set([...state.answeredHere].filter((id) => id !== event.id)) }
    case 'Connection':
      return changeConnection(state, event)
    case 'Pending':
      return { ...state, ...event.pending, isLive: true }
    case 'Viewed':
      return { ...state, ...event.view, runningSince: event.view.status === 'running' ? now : state.runningSince }
    case 'Cleared':
      return { ...state, items: [] }
    case 'Ended':
      return { ...state, ...NOTHING_WAITS, isConnected: false, status: 'idle', runningSince: undefined }
    default:
      return event satisfies never
  }
}

function changeConnection(state: ChatState, event: Extract<LocalEvent, { type: 'Connection' }>): ChatState {
  if (state.isConnected === event.isConnected) return state
  const text = event.isConnected
    ? 'Connected again.'
    : `The connection to the server is lost; connecting again. ${event.reason ?? ''}`.trimEnd()
  return addNotice({ ...state, isConnected: event.isConnected }, event.isConnected ? 'info' : 'warning', text)
}
