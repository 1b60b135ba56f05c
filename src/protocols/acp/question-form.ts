/** Questions of the agent as a form of an editor, or as text, and the answers in it. */
import type { AskedQuestion } from '../../contract/values/question.ts'
import { showHidden } from '../../contract/values/show-hidden.ts'

type Choice = { readonly const: string; readonly title: string; readonly description: string }

/** A field as both versions of the protocol have it. */
type FormField =
  | { type: 'string'; title: string; description?: string; oneOf?: Choice[] }
  | { type: 'array'; title: string; description: string; items: { anyOf: Choice[] } }

export type QuestionForm = { type: 'object'; properties: Record<string, FormField> }

export function textOfQuestions(questions: readonly AskedQuestion[]): string {
  const texts = questions.map(({ question, options }) => {
    const rows = options.map(
      ({ label, description }, at) => `${at + 1}. ${label}${description === '' ? '' : `: ${description}`}`,
    )
    return [question, ...rows].join('\n')
  })
  return showHidden(texts.join('\n\n'))
}

/** Names the fields by their index, because a question can be any text. */
export const formOf = (questions: readonly AskedQuestion[]): QuestionForm => ({
  type: 'object',
  properties: Object.fromEntries(
    questions.flatMap((question, at) => [
      [`question_${at}`, fieldOf(question)],
      ...(question.options.length > 0 ? [[`other_${at}`, OTHER]] : []),
    ]),
  ),
})

const OTHER: FormField = { type: 'string', title: 'Another answer' }

function fieldOf({ question, header, options, multi_select }: AskedQuestion): FormField {
  const about = { title: showHidden(header === '' ? question : header), description: showHidden(question) }
  const choices = options.map(({ label, description }) => {
    return { const: label, title: showHidden(label), description: showHidden(description) }
  })
  if (choices.length === 0) return { type: 'string', ...about }
  return multi_select
    ? { type: 'array', ...about, items: { anyOf: choices } }
    : { type: 'string', ...about, oneOf: choices }
}

/** Undefined if nothing was answered. Another answer takes the place of a choice, or is added where several are allowed. */
export function answersIn(questions: readonly AskedQuestion[], content: unknown): Record<string, string[]> | undefined {
  const fields: Readonly<Record<string, unknown>> = Object(content)
  const answers = questions.flatMap(({ multi_select }, at): [string, string[]][] => {
    const [chosenLabels, other] = [textsOf(fields[`question_${at}`]), textsOf(fields[`other_${at}`])]
    const all = multi_select ? [...chosenLabels, ...other] : other.length > 0 ? other : chosenLabels
    return all.length > 0 ? [[String(at), all]] : []
  })
  return answers.length > 0 ? Object.fromEntries(answers) : undefined
}

const textsOf = (value: unknown): string[] =>
  [value].flat().filter((text): text is string => typeof text === 'string' && /\S/.test(text))
