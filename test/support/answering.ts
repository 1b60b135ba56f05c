/** What tests do with the requests of an open conversation, as clients do it over HTTP. */
import { expect } from 'vitest'
import type { Event, EventOf } from '../../src/contract/events/event.ts'
import type { StoredKind } from '../../src/contract/requests/request-kinds.ts'
import type { RequestKind } from '../../src/contract/requests/request-kinds.ts'
import type { AnswerOf, OpenRequestOf } from '../../src/contract/request.ts'
import type { ToolDecision } from '../../src/contract/values/permission.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'

type Answering = Pick<Conversation, 'requests' | 'permissions'>

/** The open requests of one kind. */
export function openOf<K extends RequestKind>({ requests }: Pick<Answering, 'requests'>, kind: K): OpenRequestOf<K>[] {
  const isOf = (request: { kind: string }): request is OpenRequestOf<K> => request.kind === kind
  return requests.list({ kinds: new Set<RequestKind>([kind]) }).filter(isOf)
}

export function approvalsOf(conversation: Answering) {
  const { requests, permissions } = conversation
  const waiting = () => openOf(conversation, 'permission')
  const decide = (requestId: string, decisions: readonly ToolDecision[]) =>
    requests.answer(requestId, { kind: 'permission', decisions: [...decisions] })
  return {
    /** Returns the id and the calls of each request. */
    pending: () => ({
      items: waiting().map(({ request_id, payload, agent_name, parent_tool_use_id }) => ({
        request_id,
        ...(agent_name !== undefined && { agent_name, parent_tool_use_id }),
        tool_uses: payload.tool_uses,
      })),
    }),
    decide,
    /** Allows what waits of the request; a call that nobody has made, if it waits no more. */
    approve: (requestId: string) => {
      const { tool_uses } = waiting().find(({ request_id }) => request_id === requestId)?.payload ?? NO_SUCH_CALL
      const left = tool_uses.filter(({ decision }) => decision === undefined)
      return decide(
        requestId,
        left.map(({ tool_use_id, input_hash }) => ({ tool_use_id, input_hash, behavior: 'allow' })),
      )
    },
    reject: (reason?: string) => permissions.reject(reason),
  }
}

const NO_SUCH_CALL: OpenRequestOf<'permission'>['payload'] = {
  tool_uses: [{ tool_use_id: 'none', name: 'Act', input: {}, input_hash: '0'.repeat(64), reason: '' }],
}

export function questionsOf(conversation: Answering, kind: 'question' | 'elicitation' = 'question') {
  return {
    pending: () => ({
      items: openOf(conversation, kind).map(({ request_id, payload, tool_use_ids: [tool_use_id] }) => ({
        question_id: request_id,
        tool_use_id,
        questions: payload.questions,
      })),
    }),
    answer: (questionId: string, answers: AnswerOf<'question'>['answers']) =>
      conversation.requests.answer(questionId, { kind, answers }),
  }
}

type OfKind<T extends 'RequestOpened' | 'RequestAnswered', K> = Extract<EventOf<T>, { kind: K }>

/** The requests of one kind that were opened. */
export const openedIn = <K extends StoredKind>(events: readonly Event[], kind: K): OfKind<'RequestOpened', K>[] =>
  events.filter((event): event is OfKind<'RequestOpened', K> => event.type === 'RequestOpened' && event.kind === kind)

export const answersIn = <K extends StoredKind>(events: readonly Event[], kind: K): OfKind<'RequestAnswered', K>[] =>
  events.filter(
    (event): event is OfKind<'RequestAnswered', K> => event.type === 'RequestAnswered' && event.kind === kind,
  )

/** Each decision about a call, with its place in the log and who made it. */
export const decisionsIn = (events: readonly Event[]) =>
  answersIn(events, 'permission').flatMap(({ seq, source, request_id, answer, answered_by }) =>
    answer.decisions.map((decision) => ({ seq, source, request_id, answered_by, ...decision })),
  )

/** Resolves when a request of this kind waits, with it. */
export async function untilOpen<K extends RequestKind>(conversation: Answering, kind: K): Promise<OpenRequestOf<K>> {
  await expect.poll(() => openOf(conversation, kind).length).toBeGreaterThan(0)
  const [request] = openOf(conversation, kind)
  if (!request) throw new Error(`no request of the kind ${kind} waits`)
  return request
}
