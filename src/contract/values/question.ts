/** Questions that the agent asks the user, and their answers. */
import { z } from 'zod'

/** Sizes of questions, in characters. */
export const MAX_QUESTION_CHARS = 4000
/** Questions of one call. */
export const MAX_QUESTIONS = 4

/** The option of each form of an MCP server that declines it. Any other text is the value of a field. */
export const DECLINE = 'Decline'

const MAX_ANSWER_CHARS = 10_000
/** Chosen options of one question, and more than there can be. */
const MAX_CHOICES = 20

export const AskedQuestion = z
  .object({
    question: z.string(),
    header: z.string().describe('The subject in a few characters, for a small display.'),
    options: z.array(z.object({ label: z.string(), description: z.string() })),
    multi_select: z.boolean().describe('Whether several options may be chosen.'),
  })
  .meta({ id: 'AskedQuestion' })
export type AskedQuestion = z.infer<typeof AskedQuestion>

export const Answers = z
  .record(z.string(), z.array(z.string()))
  .describe(
    'Labels of the chosen options, or other text, by the text of the question. Unanswered questions are absent.',
  )
export type Answers = z.infer<typeof Answers>

const AnswerText = z.string().max(MAX_ANSWER_CHARS).regex(/\S/, { error: 'must not be blank' })

const AnswerValue = z
  .union([AnswerText, z.array(AnswerText).min(1).max(MAX_CHOICES)], {
    error: `must be texts, or lists of at most ${MAX_CHOICES} texts`,
  })
  .meta({ id: 'AnswerValue' })

const MAX_KEYS = MAX_QUESTIONS * 2

export const AnswerQuestion = z.strictObject({
  answers: z
    .record(z.string().max(MAX_QUESTION_CHARS), AnswerValue)
    .refine((answers) => Object.keys(answers).length > 0, { error: 'must answer at least one question' })
    .refine((answers) => Object.keys(answers).length <= MAX_KEYS, { error: `has more than ${MAX_KEYS} answers` })
    .meta({ minProperties: 1, maxProperties: MAX_KEYS })
    .describe(
      'By the text of the question, or by its index from 0: the label of an option, a list of labels, or any other text. A list of several needs `multi_select`. Questions that are left out stay unanswered.',
    ),
})
export type AnswerQuestion = z.infer<typeof AnswerQuestion>
