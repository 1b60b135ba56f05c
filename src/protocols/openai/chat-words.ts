/** What the server says in an answer of the Chat Completions API, besides the agent. */
import type { EventOf } from '../../contract/events/event.ts'
import { titleOf } from '../../contract/events/call-title.ts'
import type { OpenRequest } from '../../contract/request.ts'
import { decisionOf, hasForm, questionForm } from '../../contract/requests/request-forms.ts'
import { textOfQuestion } from '../shared/question-text.ts'

/** What a stream has after a text that the agent does not know. */
export const TAKEN_BACK = '(The text above was cut off, and does not count.)'

export const STOPPED = '(The agent was stopped.)'

const MAX_TITLE_CHARS = 200

type RequestShown = EventOf<'RequestOpened'> | OpenRequest

/** `conversationId` undefined: nobody can answer, because the conversation ends with the answer. */
export function waitingWords(request: RequestShown, conversationId: string | undefined): string {
  const { request_id: id, payload } = request
  if (hasForm(request, 'questions')) {
    const questions = request.payload.questions.map(textOfQuestion)
    const isHeld = questionForm(request.kind).unanswered !== undefined
    const how = isHeld ? howTo(id, conversationId) : 'The next message is read as the answer.'
    return [...questions, `(Request ${id}. ${how})`].join('\n\n')
  }
  const what = 'tool_uses' in payload ? payload.tool_uses.map(({ name, input }) => `${name} ${jsonOf(input)}`) : []
  const matter = hasForm(request, 'decision') ? [decisionOf(request).matter] : []
  const subject = [...what, ...matter].join('; ')
  return `(The agent waits for a decision${subject === '' ? '' : ` about ${subject}`}. ${howTo(id, conversationId)})`
}

function howTo(requestId: string, conversationId: string | undefined): string {
  if (conversationId === undefined)
    return 'Nothing of it was done: without the header X-Conversation-Id nobody can decide, and the conversation has ended.'
  return `Decide with the API of the server: POST /conversations/${conversationId}/requests/${requestId}. A message decides nothing.`
}

/** One line for a call of a tool of the server. */
export function lineOf({ name, input }: Pick<EventOf<'ToolUse'>, 'name' | 'input'>): string {
  const title = titleOf(name, input).replaceAll(/\s+/g, ' ').trim()
  const shownTitle = title.length > MAX_TITLE_CHARS ? `${title.slice(0, MAX_TITLE_CHARS).toWellFormed()}…` : title
  return shownTitle === '' ? `[${name}]` : `[${name}] ${shownTitle}`
}

export const jsonOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
