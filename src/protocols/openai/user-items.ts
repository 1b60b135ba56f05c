/** The items that a client adds to a conversation without asking the agent: messages of the user. */
import { z } from 'zod'
import type { UserPart } from '../../contract/values/message.ts'
import { UserInput } from '../../contract/values/message.ts'
import { readInput } from './response-request.ts'
import { invalid, parseField } from '../shared/fields.ts'

export type UserWords = readonly UserPart[]

/** The number of the API of OpenAI. */
const MAX_ITEMS = 20

export const InputItems = z
  .array(z.looseObject({ type: z.string().optional(), role: z.string().optional() }))
  .max(MAX_ITEMS)

/** Throws an `OpenAiError` that names what cannot be added: what others have said, and answers, which go to the agent at once. */
export function userWordsOf(items: z.infer<typeof InputItems>): UserWords[] {
  return items.map((item) => {
    const { type = 'message', role } = item
    if (type !== 'message')
      throw invalid('items', `has an item of the type ${type.slice(0, 50)}; send it as the input of a response`)
    if (role !== 'user')
      throw invalid('items', `has a message of the role ${role?.slice(0, 50)}; only those of the user can be added`)
    const { parts } = readInput([item], false)
    parseField(UserInput, { role: 'user', content: parts }, 'items')
    return parts
  })
}
