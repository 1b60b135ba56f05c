/**
 * The `AskUserQuestion` tool: the agent asks the user, and the answer is the result of the call. It only says what is
 * asked; the conversation shows the questions, waits, and stores the answer.
 */
import { z } from 'zod'
import type { AskedQuestion } from '../contract/values/question.ts'
import { MAX_QUESTION_CHARS, MAX_QUESTIONS } from '../contract/values/question.ts'
import type { Tool } from './tool.ts'
import { failure } from '../state/tool-call.ts'

const MAX_HEADER_CHARS = 100
const MAX_LABEL_CHARS = 200
const MAX_DESCRIPTION_CHARS = 2000
const [MIN_OPTIONS, MAX_OPTIONS] = [2, 4]

/** Control characters could forge the display of a terminal; line feeds and tabs are only white space. */
// oxlint-disable-next-line no-control-regex -- that is what it looks for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

const line = (max: number) =>
  z
    .string()
    .max(max)
    .refine((text) => !CONTROL.test(text), { error: 'has control characters' })
const words = (max: number) => line(max).refine((text) => text.trim() !== '', { error: 'is empty' })

const Option = z.object({
  label: words(MAX_LABEL_CHARS).describe('What the user chooses, in 1 to 5 words.'),
  description: line(MAX_DESCRIPTION_CHARS).default('').describe('What it means, or what follows from choosing it.'),
})

const AskedBlock = z.object({
  question: words(MAX_QUESTION_CHARS)
    // A JavaScript object cannot have this name in every place where answers are handled.
    .refine((text) => text !== '__proto__', { error: 'is not a question' })
    .describe('The whole question, clear and specific, with a question mark at its end.'),
  header: words(MAX_HEADER_CHARS).describe('A label of at most 12 characters, such as "Library" or "Approach".'),
  options: z
    .array(Option)
    .min(MIN_OPTIONS)
    .max(MAX_OPTIONS)
    .refine((options) => areUnique(options.map(({ label }) => label)), { error: 'two options have the same label' })
    .describe('Choices that differ. None named "Other": the user can always write something else.'),
  multiSelect: z.boolean().default(false).describe('Whether several options may be chosen.'),
})

const AskUserQuestionInput = z.object({
  questions: z
    .array(z.preprocess(withMultiSelect, AskedBlock))
    .min(1)
    .max(MAX_QUESTIONS)
    .refine((questions) => areUnique(questions.map(({ question }) => question)), {
      error: 'two questions have the same text',
    })
    .refine(
      (questions) => !questions.some(({ question }, index) => isIndexOfAnother(question, index, questions.length)),
      {
        error: 'a question is the number of another one',
      },
    ),
})
type AskUserQuestionInput = z.infer<typeof AskUserQuestionInput>

const DESCRIPTION = `Asks the user questions while you work, and waits for the answers. Use it to learn preferences or requirements, to clear up what is ambiguous, to get a decision, or to offer a choice of directions.

- The user can choose an option or write something else. \`multiSelect\` allows several options.
- If you recommend an option, put it first and end its label with "(Recommended)".
- Ask what belongs together in one call. Do not ask what you can find out yourself.`

export function createAskUserQuestion(): Tool<AskUserQuestionInput> {
  return {
    name: 'AskUserQuestion',
    description: DESCRIPTION,
    input: AskUserQuestionInput,
    output: z.string(),
    harmless: true,
    questions: ({ questions }) => questions.map(toQuestion),
    async run() {
      return failure('failed', 'Nobody can be asked here. Decide yourself, and say how you decided.')
    },
  }
}

const toQuestion = ({ question, header, options, multiSelect }: z.infer<typeof AskedBlock>): AskedQuestion => ({
  question,
  header,
  options,
  multi_select: multiSelect,
})

/** Some models write the name as the other parameters of their tools are written. */
function withMultiSelect(givenInput: unknown): unknown {
  if (
    typeof givenInput !== 'object' ||
    givenInput === null ||
    !('multi_select' in givenInput) ||
    'multiSelect' in givenInput
  )
    return givenInput
  return { ...givenInput, multiSelect: givenInput.multi_select }
}

const areUnique = (texts: readonly string[]) => new Set(texts).size === texts.length

/** An answer can name a question by its text or by its index: it would belong to two questions. */
const isIndexOfAnother = (text: string, own: number, count: number) =>
  /^\d+$/.test(text) && Number(text) !== own && Number(text) < count
