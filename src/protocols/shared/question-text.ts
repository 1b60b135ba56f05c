/** A question as text, for clients that show no forms. */
import type { AskedQuestion } from '../../contract/values/question.ts'

/** The question, and its options as a numbered list. */
export const textOfQuestion = ({ question, options }: AskedQuestion): string =>
  [question, ...options.map(({ label }, at) => `${at + 1}. ${label}`)].join('\n')
