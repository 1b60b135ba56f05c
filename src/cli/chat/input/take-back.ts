/** Puts the last message that the agent has not read back into the prompt, where it can be edited. */
import type { ChatSession } from '../chat-session.ts'
import type { UnreadMessage } from '../state/unread.ts'
import { unreadMessages } from '../state/unread.ts'

type Prompt = { draft: string; readonly restore: (text: string) => void }

/** Returns false if there is no such message. What fails is reported in the chat. */
export function takeBack(session: ChatSession, prompt: Prompt): boolean {
  const last = unreadMessages(session.state).at(-1)
  if (last) withdraw(session, last, prompt).catch((error: unknown) => session.fail(error))
  return last !== undefined
}

/** What was typed meanwhile stays, below the message. */
async function withdraw(session: ChatSession, message: UnreadMessage, prompt: Prompt): Promise<void> {
  const text = await session.takeBack(message)
  if (text === undefined) return session.say('The agent has read that message already; Esc interrupts it.')
  prompt.restore([text, prompt.draft].filter((each) => each !== '').join('\n\n'))
}
