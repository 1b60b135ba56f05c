/** Questions that do not wait any more: how they ended is only in the log. */
import type { EventOf } from '../../contract/events/event.ts'
import type { AnswerQuestion, AskedQuestion, Answers } from '../../contract/events/questions.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { readPages } from '../../events/read-pages.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'
import { questionNotFound } from '../../state/question-intents.ts'

const TYPES = new Set(['UserQuestion', 'UserAnswer'])
const PAGE = 1000

/** `match` finds the questions that answers belong to. */
type Match = (questions: readonly AskedQuestion[], given: AnswerQuestion['answers']) => Answers | Problem

/** Checks an answer that comes after the first one: throws a `Problem` unless it is the same. */
export async function requireSameAnswer(
  log: EventLog,
  questionId: string,
  given: AnswerQuestion['answers'],
  match: Match,
): Promise<void> {
  const { question, answer } = await findClosed(log, questionId)
  if (!question) throw questionNotFound()
  if (!answer) throw closed()
  const answers = match(question.questions, given)
  if (answers instanceof Problem || canonicalJson(answers) !== canonicalJson(answer.answers)) throw answeredBefore()
}

type Closed = { readonly question?: EventOf<'UserQuestion'>; readonly answer?: EventOf<'UserAnswer'> }

/** Reads backwards from the newest event to the question. */
async function findClosed(log: EventLog, questionId: string): Promise<Closed> {
  let answer: EventOf<'UserAnswer'> | undefined
  for await (const { events } of readPages(log, { types: TYPES, order: 'desc', limit: PAGE })) {
    for (const { event } of events) {
      if (event.type === 'UserAnswer' && event.question_id === questionId) answer = event
      if (event.type === 'UserQuestion' && event.question_id === questionId)
        return { question: event, ...(answer && { answer }) }
    }
  }
  return {}
}

const answeredBefore = () =>
  new Problem('already_answered', 'This question was answered before; the first answer counts. Send a message instead.')

const closed = () =>
  new Problem(
    'question_closed',
    'This question was closed without an answer, by a message, a rejection or an interruption. Send a message instead.',
  )
