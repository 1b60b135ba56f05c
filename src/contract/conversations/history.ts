/** Earlier messages from elsewhere, with which a conversation begins. */
import { z } from 'zod'

const MAX_MESSAGES = 1000

/** Characters of all messages. Clients of other protocols may send as many. */
const MAX_CHARS = 128 * 1024

const HistoryMessage = z
  .strictObject({
    role: z.enum(['user', 'assistant']),
    content: z
      .string()
      .regex(/\S/, 'a message must contain text')
      .overwrite((text) => text.toWellFormed()),
  })
  .meta({ id: 'HistoryMessage' })

export const EarlierMessages = z
  .array(HistoryMessage)
  .min(1)
  .max(MAX_MESSAGES)
  .refine((messages) => messages.reduce((sum, { content }) => sum + content.length, 0) <= MAX_CHARS, {
    error: `must have at most ${MAX_CHARS} characters`,
  })
  .describe(
    'What was said elsewhere, the oldest first, with at most 131,072 characters. The agent reads it as text at the beginning of `initial_message`.',
  )
