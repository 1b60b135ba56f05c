/** The message that asks the agent to continue, where the model would otherwise read two answers in a row. */
import type { ModelMessage } from '../../llm/llm.ts'
import type { ListedMessage } from './message-list.ts'

/** An answer comes next, and none may follow another one. */
export const isDue = (last: ModelMessage | undefined): boolean => !last || last.role === 'assistant'

const asUser = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const CONTINUE = asUser('Continue.')
const CONTINUE_UNREAD = asUser(
  'Continue. The message before your last answer came while you were writing it: follow it now.',
)

export const isContinue = (message: ModelMessage | undefined): boolean =>
  message === CONTINUE || message === CONTINUE_UNREAD

export const continueAfter = (last: ListedMessage | undefined): ModelMessage =>
  last?.leftUnread ? CONTINUE_UNREAD : CONTINUE
