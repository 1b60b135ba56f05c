/** Questions that wait for the user, as a pure fold of the log. */
import type { EventOf } from '../contract/events/event.ts'
import type { AskedQuestion, PendingQuestions } from '../contract/events/questions.ts'

/** The questions of one tool call; the call waits as long as they do. */
export type OpenQuestion = {
  readonly id: string
  readonly toolUseId: string
  /** RFC 3339. */
  readonly askedAt: string
  readonly questions: readonly AskedQuestion[]
}

type Open = readonly OpenQuestion[]

export function questionsAfter(open: Open, event: EventOf<'UserQuestion' | 'UserAnswer'>): Open {
  const others = open.filter(({ id }) => id !== event.question_id)
  if (event.type === 'UserAnswer') return others
  const { question_id: id, tool_use_id: toolUseId, timestamp: askedAt, questions } = event
  return [...others, { id, toolUseId, askedAt, questions }]
}

/** A call that has its result asks nothing any more. */
export const questionsAfterResult = (open: Open, toolUseId: string): Open =>
  open.length > 0 ? open.filter((question) => question.toolUseId !== toolUseId) : open

export const isAsking = (open: Open, toolUseId: string): boolean =>
  open.some((question) => question.toolUseId === toolUseId)

/** Returns the question as clients see it. */
export function questionView({ id, toolUseId, askedAt, questions }: OpenQuestion): PendingQuestions['items'][number] {
  return { question_id: id, tool_use_id: toolUseId, asked_at: askedAt, questions: [...questions] }
}
