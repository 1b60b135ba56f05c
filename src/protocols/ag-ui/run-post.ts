/** What a client posts to begin a run. */
import type { Access } from '../../access/access.ts'
import type { TextPart, UserPart } from '../../contract/values/message.ts'
import type { HashBody } from '../../security/body-hash.ts'
import type { RunInput } from './run-input.ts'

export type RunPost = {
  readonly input: RunInput
  readonly userInputs: UserInputs
  readonly access: Access
  readonly hashBody: HashBody
  /** The first message says what other keys put in the system prompt. */
  readonly instructions: string | undefined
}

/** What a client says with a request, whether the thread has it or not. */
export type UserInputs = {
  readonly messages: readonly UserInputMessage[]
  /** What the application says of itself. */
  readonly context: TextPart | undefined
}
export type UserInputMessage = { readonly id: string; readonly parts: readonly UserPart[] }

/** `earlier`: what was said before it elsewhere. */
export type PostableMessage = UserInputMessage & { readonly earlier?: readonly UserPart[] }
