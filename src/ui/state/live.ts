/** What happens in all conversations: one connection to the firehose, and the lists that it keeps up to date. */
import { computed, effect, signal, untracked } from '@preact/signals'
import type { EventOf, EventType } from '../../contract/events/event.ts'
import type { WaitingRequest, WaitingRequests } from '../../contract/request.ts'
import { KINDS_FOR_PEOPLE } from '../../contract/requests/request-forms.ts'
import { texts } from './preferences.ts'
import { forgetDraftsOf } from './remembered.ts'
import { serverNow } from './server-time.ts'
import type { SummaryChange } from './summary-rows.ts'
import { client, connections, lostSince, messageOf } from './session.ts'

/** The requests that are read: more of them are read when these are answered. */
const MOST = 200

const waiting = signal<WaitingRequests | undefined>(undefined)

/** What waits for a person in all conversations, the oldest first. Undefined until it has been read. */
export const forPeople = computed<readonly WaitingRequest[] | undefined>(() => waiting.value?.items)

/** How many these are, such as `200+`; empty if there are none. */
export const howManyWait = computed(() => {
  const { items = [], next_page_id = null } = waiting.value ?? {}
  return items.length === 0 ? '' : `${items.length}${next_page_id === null ? '' : '+'}`
})

/** Grows with each event that changes how many conversations have a status. */
export const countVersion = signal(0)

const REQUEST_TYPES = ['RequestOpened', 'RequestAnswered', 'RequestClosed'] as const satisfies EventType[]
const COUNT_TYPES = ['SystemInit', 'ForkedFrom', 'StatusUpdate', 'ConfigUpdate'] as const satisfies EventType[]

const listeners = new Set<(change: SummaryChange) => void>()

/** Calls `listener` with each row of a list that changes. Returns a function that ends it. */
export function onSummaryChange(listener: (change: SummaryChange) => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** A run that has finished or failed, by the event that says so. */
export type EndedRun = { readonly id: string; readonly conversation_id: string; readonly status: 'finished' | 'error' }

/** The answer to a request, or its end without one. */
export type RequestEnd = EventOf<'RequestAnswered'> | EventOf<'RequestClosed'>

const requestEndListeners = new Set<(end: RequestEnd) => void>()

/** Calls `listener` with each answer to a request from now on. Returns a function that ends it. */
export function onRequestEnd(listener: (end: RequestEnd) => void): () => void {
  requestEndListeners.add(listener)
  return () => void requestEndListeners.delete(listener)
}

const endListeners = new Set<(end: EndedRun) => void>()

/** Calls `listener` with each run that ends from now on. Returns a function that ends it. */
export function onRunEnd(listener: (end: EndedRun) => void): () => void {
  endListeners.add(listener)
  return () => void endListeners.delete(listener)
}

/** What a screen reader says once. */
export const announcement = signal('')

/** The same words once more are a change that a screen reader says, too: two agents may end in the same way. */
const announce = (text: string) => void (announcement.value = text === announcement.peek() ? `${text}\u00A0` : text)

/** An agent that has answered is idle: for who waited for it, it has finished. */
function noticeStatus({ id, conversation_id, status, previous_status }: EventOf<'StatusUpdate'>): void {
  const { status: words, agentEnded } = texts.value
  const now = status === 'idle' ? 'finished' : status
  if (previous_status === 'running') announce(agentEnded(words[now]))
  if (now !== 'finished' && now !== 'error') return
  if (previous_status !== 'running' && !previous_status.startsWith('waiting')) return
  for (const listener of endListeners) listener({ id, conversation_id, status: now })
}

/** Counts that change all the time are read once in that many milliseconds. */
const COUNT_PAUSE_MS = 500

/** The wait after a first connection that has failed, and after a request that has, in milliseconds. */
const [RETRY_MS, AGAIN_MS] = [1000, 5000]

const isOneOf = (types: readonly string[], type: string): boolean => types.includes(type)

/** Follows the server until the signal aborts. */
export async function followServer(signal: AbortSignal): Promise<void> {
  const readRequests = bundle(() => refreshRequests(), signal)
  const readCounts = bundle(async () => void (countVersion.value += 1), signal, COUNT_PAUSE_MS)
  // This also reads before there is a connection. What happens between the two readings is in the second one.
  const stopReading = effect(() => {
    const isConnected = connections.value > 0
    // A change of what these read does not begin all of this once more.
    untracked(() => {
      if (isConnected) readCounts()
      readRequests()
    })
  })
  try {
    while (!signal.aborted) {
      // The first connection fails like any other request. It is tried again until there is one.
      await followFirehose(signal, readRequests, readCounts).catch((error: unknown) => {
        if (signal.aborted) return
        messageOf(error)
        onDisconnect()
      })
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  } finally {
    stopReading()
  }
}

const onDisconnect = () => (lostSince.value ??= serverNow())

async function followFirehose(signal: AbortSignal, readRequests: () => void, readCounts: () => void): Promise<void> {
  const types = [...REQUEST_TYPES, ...COUNT_TYPES]
  const events = client().firehose({ types, summaries: true, signal, onDisconnect, giveUpAfterMs: Infinity })
  for await (const { event } of events) {
    const isDeleted = event.type === 'conversation_deleted'
    if (isDeleted) forgetDraftsOf(event.conversation_id)
    if (event.type === 'ConversationSummary' || isDeleted) {
      const change = { id: event.conversation_id, summary: isDeleted ? undefined : event.summary }
      for (const listener of listeners) listener(change)
    }
    if (event.type === 'RequestAnswered' || event.type === 'RequestClosed')
      for (const listener of requestEndListeners) listener(event)
    if (isOneOf(REQUEST_TYPES, event.type) || isDeleted) readRequests()
    if (isOneOf(COUNT_TYPES, event.type) || isDeleted) readCounts()
    if (event.type === 'StatusUpdate' && event.status !== event.previous_status) noticeStatus(event)
  }
}

export async function refreshRequests(): Promise<void> {
  const page = await client().conversations.requests({ kinds: KINDS_FOR_PEOPLE, limit: MOST })
  waiting.value = { ...page, items: inPlace(page.items) }
}

/** What arrives comes after what is shown, which somebody may be about to press: of several instances, one may be behind. */
function inPlace(items: readonly WaitingRequest[]): WaitingRequest[] {
  const shownIds = (forPeople.peek() ?? []).map(({ request }) => request.request_id)
  const place = ({ request }: WaitingRequest) =>
    shownIds.indexOf(request.request_id) + 1 || items.length + shownIds.length
  return items.toSorted((a, b) => place(a) - place(b))
}

/** Calls at once, and again when it was called meanwhile, or has failed: never two at a time. */
function bundle(work: () => Promise<void>, signal: AbortSignal, pauseMs = 0): () => void {
  let isActive = false
  let isWanted = false
  const go = async () => {
    isActive = true
    do {
      isWanted = false
      const isDone = await work().then(
        () => true,
        (error: unknown) => (messageOf(error), false),
      )
      // Nothing may happen for long that would make it read again.
      isWanted ||= !isDone
      await new Promise((resolve) => setTimeout(resolve, isDone ? pauseMs : AGAIN_MS))
    } while (isWanted && !signal.aborted)
    isActive = false
  }
  return () => {
    if (isActive) isWanted = true
    else void go()
  }
}
