/** Tells a person who is about to answer a request that somebody else was first, and who. */
import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { AgentServerError } from '../../client/client.ts'
import type { OpenRequest } from '../../contract/request.ts'
import { hasForm } from '../../contract/requests/request-forms.ts'
import type { RequestEnd } from '../state/live.ts'
import { onRequestEnd } from '../state/live.ts'
import { texts } from '../state/preferences.ts'
import { client, messageOf, session } from '../state/session.ts'
import { visible } from '../text/visible.ts'
import { notify } from './notices.tsx'

/** Says who has answered it, or why it was closed. */
export function wordsOfEnd(end: RequestEnd): string {
  const { answeredBy, closed, somebodyWithMasterKey, you } = texts.value
  if (end.type === 'RequestClosed') return closed(end.reason)
  if (end.key_name !== undefined) return answeredBy(visible(end.key_name))
  if (end.answered_by !== 'user') return answeredBy(end.answered_by)
  // The master key has no name.
  return answeredBy(session.value?.me.kind === 'master' ? you : somebodyWithMasterKey)
}

type Props = {
  readonly conversationId: string
  readonly request: OpenRequest
  readonly card: RefObject<HTMLElement | null>
  /** Called before the card disappears, if it has the focus. */
  readonly leave: () => void
}

/** The answers that are looked at to find one that was refused just now. */
const MOST_ENDS = 100

/**
 * Returns what sends an answer of this person, and returns whether it was the first one: if not, it says whose was. Throws all
 * other faults.
 */
export function useFirstAnswer({ conversationId, request, card, leave }: Props) {
  /** True after an answer of this person, and after the notice. */
  const isKnown = useRef(false)
  const tell = (reason: string) => {
    isKnown.current = true
    notify(texts.value.already(reason), { isFault: true })
  }
  useEffect(() =>
    onRequestEnd((end) => {
      if (end.request_id !== request.request_id || isKnown.current) return
      if (card.current?.matches(':hover, :focus-within')) tell(wordsOfEnd(end))
      if (isWhole(end, request) && card.current?.matches(':focus-within')) leave()
    }),
  )
  return async (send: () => Promise<unknown>): Promise<boolean> => {
    isKnown.current = true
    try {
      await send()
      return true
    } catch (error) {
      const isLate = error instanceof AgentServerError && error.status === 409
      isKnown.current = isLate
      if (!isLate) throw error
      tell(await firstAnswer(conversationId, request.request_id).catch(() => messageOf(error)))
      return false
    }
  }
}

async function firstAnswer(conversationId: string, requestId: string): Promise<string> {
  const query = { types: [...END_TYPES], order: 'desc' as const, limit: MOST_ENDS }
  const { items } = await client().conversation(conversationId).listEvents(query)
  const end = items.find((event): event is RequestEnd => 'request_id' in event && event.request_id === requestId)
  if (!end) throw new Error('It was answered long ago.')
  return wordsOfEnd(end)
}

const END_TYPES = ['RequestAnswered', 'RequestClosed'] as const

/** Returns false if some calls of the request still wait. */
function isWhole(end: RequestEnd, request: OpenRequest): boolean {
  if (end.type === 'RequestClosed' || !hasForm(request, 'calls')) return true
  const endedIds = new Set(end.tool_use_ids)
  return request.payload.tool_uses.every(({ tool_use_id, decision }) => decision || endedIds.has(tool_use_id))
}
