/** Finds the questions that given answers belong to. Pure. */
import type { AnswerQuestion, Answers, AskedQuestion } from '../../contract/values/question.ts'
import { Problem } from '../../contract/problem.ts'
import { canonicalJson } from '../../lib/json/canonical-json.ts'

/** Returns the answers by the texts of the questions, or a `Problem` that names what fits no question. */
export function matchAnswers(
  questions: readonly AskedQuestion[],
  givenAnswers: AnswerQuestion['answers'],
): Answers | Problem {
  const foundAnswers = new Map<string, string[]>()
  for (const [key, value] of Object.entries(givenAnswers)) {
    const askedQuestion = questions.find(({ question }) => question === key) ?? questions[indexIn(key)]
    if (!askedQuestion)
      return refuse(questions, `${nameOf(key, givenAnswers)} is neither the text nor the index of a question`)
    const texts = [...new Set([value].flat())]
    const index = questions.indexOf(askedQuestion)
    if (foundAnswers.has(askedQuestion.question)) return refuse(questions, `question ${index} is answered twice`)
    if (texts.length > 1 && !askedQuestion.multi_select) return refuse(questions, `question ${index} takes one answer`)
    foundAnswers.set(askedQuestion.question, texts)
  }
  return Object.fromEntries(questions.flatMap(({ question }) => entryOf(question, foundAnswers)))
}

/** The same; throws the `Problem`. */
export function matchOrThrow(questions: readonly AskedQuestion[], givenAnswers: AnswerQuestion['answers']): Answers {
  const answers = matchAnswers(questions, givenAnswers)
  if (answers instanceof Problem) throw answers
  return answers
}

/** Returns how given answers compare with those that were stored. */
export function sameAnswers(
  questions: readonly AskedQuestion[],
  givenAnswers: AnswerQuestion['answers'],
  storedAnswers: AnswerQuestion['answers'],
): 'same' | 'other' {
  const [answers, earlier] = [matchAnswers(questions, givenAnswers), matchAnswers(questions, storedAnswers)]
  if (answers instanceof Problem || earlier instanceof Problem) return 'other'
  return canonicalJson(answers) === canonicalJson(earlier) ? 'same' : 'other'
}

/** Secrets are replaced in what the user wrote; the questions are named as they are stored. */
export function redactAnswers(
  answers: AnswerQuestion['answers'],
  redact: (text: string) => string,
): AnswerQuestion['answers'] {
  const redactedAnswers = Object.entries(answers).map(([question, givenAnswer]): [string, string | string[]] => [
    question,
    typeof givenAnswer === 'string' ? redact(givenAnswer) : givenAnswer.map(redact),
  ])
  return Object.fromEntries(redactedAnswers)
}

/** -1 if the key is not an index. */
const indexIn = (key: string) => (/^\d{1,3}$/.test(key) ? Number(key) : -1)

const entryOf = (question: string, foundAnswers: ReadonlyMap<string, string[]>): [string, string[]][] => {
  const texts = foundAnswers.get(question)
  return texts ? [[question, texts]] : []
}

/** A number is repeated, as it can be no secret; another key is named by its position. */
function nameOf(key: string, givenAnswers: AnswerQuestion['answers']): string {
  if (indexIn(key) >= 0) return `key "${key}"`
  const texts = Object.keys(givenAnswers).filter((each) => indexIn(each) < 0)
  return `key ${texts.indexOf(key) + 1} (numbers not counted)`
}

function refuse(questions: readonly AskedQuestion[], message: string): Problem {
  return new Problem('invalid_request', `answers: ${message}. The request shows its questions.`, {
    details: {
      issues: [{ path: 'body.answers', message }],
      questions: questions.map(({ question }, index) => ({ index, question })),
    },
  })
}
