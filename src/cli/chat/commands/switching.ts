/** Commands that show another conversation. */
import type { ConversationView } from '../../../contract/conversation.ts'
import { cleanLine } from '../state/clean-text.ts'
import type { ChatContext } from './command.ts'

/** Conversations in the list. */
const LISTED = 30
const SHORTEST_ID = 4

export async function newConversation({ options, switchTo }: ChatContext): Promise<void> {
  switchTo(await options.createConversation())
}

export async function resume({ options, session, switchTo, pick }: ChatContext, id: string): Promise<void> {
  const { items } = await options.client.conversations.list({ limit: LISTED })
  if (id !== '') return switchTo(await find(id, items, (full) => options.client.conversation(full).get()))
  const others = items.filter((view) => view.id !== session.view.id)
  if (others.length === 0) return session.say('There is no other conversation.')
  pick({
    title: 'Which conversation?',
    text: '',
    options: others.map((view) => ({ label: nameOf(view), description: cleanLine(view.workdir) })),
    isMultiple: false,
    hint: 'Enter or a number continues it; Esc closes the list',
    onChoose: ([at = 0]) => {
      const chosen = others[at]
      if (chosen) switchTo(chosen)
    },
  })
}

const nameOf = ({ id, title, updated_at, status }: ConversationView): string =>
  `${updated_at.slice(0, 16).replace('T', ' ')}  ${cleanLine(title ?? id)}  (${status})`

/** By its id, or by the beginning of it. */
async function find(
  id: string,
  items: readonly ConversationView[],
  get: (id: string) => Promise<ConversationView>,
): Promise<ConversationView> {
  const found = id.length < SHORTEST_ID ? [] : items.filter((view) => view.id.startsWith(id.toLowerCase()))
  return found.length === 1 && found[0] ? found[0] : await get(id)
}
