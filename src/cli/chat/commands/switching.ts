/** Commands that show another conversation. */
import type { ConversationView } from '../../../contract/conversation.ts'
import { ageOf, nameOf, stateOf } from '../../conversation/describe-conversation.ts'
import { isPartOf } from '../../conversation/find-conversation.ts'
import { describeWeakMode, useByOthers } from '../../conversation/refuse-resume.ts'
import { cleanLine } from '../state/clean-text.ts'
import type { ChatContext } from './command.ts'
import { CONVERSATION_ID } from '../../../contract/values/conversation-id.ts'

/** Conversations in the list. */
const LISTED = 30
const SHORTEST_ID = 4

export async function newConversation({ options, switchTo }: ChatContext): Promise<void> {
  switchTo(await options.createConversation(), options.names)
}

export async function resume(context: ChatContext, id: string): Promise<void> {
  const { options, session, pick } = context
  const { items } = await options.client.conversations.list({ limit: LISTED })
  if (id !== '') return enter(context, await find(id, items, (full) => options.client.conversation(full).get()))
  const others = items.filter((view) => view.id !== session.view.id)
  if (others.length === 0) return session.say('There is no other conversation.')
  pick({
    title: 'Which conversation?',
    text: '',
    options: others.map((view) => ({ label: cleanLine(nameOf(view)), description: factsOf(view) })),
    isMultiple: false,
    hint: 'Enter or a number continues it; Esc closes the list',
    onChoose: ([at = 0]) => {
      const chosenView = others[at]
      if (chosenView) enter(context, chosenView)
    },
  })
}

/** A mode that asks for less than this chat is not inherited unasked, and nobody is disturbed unasked. */
function enter({ session, switchTo, pick }: ChatContext, view: ConversationView): void {
  const { permission_mode: mode } = view.state
  const weak = ['bypass', mode].includes(session.state.mode) ? undefined : describeWeakMode(mode)
  const use = view.id === session.view.id ? undefined : useByOthers(view)
  if (weak === undefined && use === undefined) return switchTo(view)
  pick({
    title: `Continue ${cleanLine(nameOf(view))}?`,
    text: [...(weak === undefined ? [] : [`It has the ${weak}`]), ...(use === undefined ? [] : [`It ${use}.`])].join(
      ' ',
    ),
    options: [
      { label: 'No', description: 'This conversation stays.' },
      { label: 'Yes', description: 'As it is.' },
    ],
    isMultiple: false,
    hint: 'Enter or a number answers; Esc closes the list',
    onChoose: ([at]) => {
      if (at === 1) switchTo(view)
    },
  })
}

/** The directory is not copied: it is that of the person's project. */
export async function fork({ session, switchTo }: ChatContext, title: string): Promise<void> {
  switchTo(await session.conversation.fork({ workdir: 'share', ...(title !== '' && { title }) }))
}

const factsOf = (view: ConversationView): string => cleanLine(`${ageOf(view)} · ${stateOf(view)} · ${view.workdir}`)

export async function rename({ session }: ChatContext, title: string): Promise<void> {
  if (title === '') throw new Error('Give the new title: /rename TITLE.')
  await session.conversation.updateConfig({ title })
  // The event comes later, and the next command may show the title.
  session.dispatch({ type: 'Viewed', view: { title } })
  session.say(`The conversation is called ${cleanLine(title)} now.`)
}

/** Finds a conversation by its id, or by the beginning or the end of it. */
async function find(
  id: string,
  items: readonly ConversationView[],
  get: (id: string) => Promise<ConversationView>,
): Promise<ConversationView> {
  if (CONVERSATION_ID.test(id)) return await get(id.toLowerCase())
  const [foundView, ...others] = id.length < SHORTEST_ID ? [] : items.filter((view) => isPartOf(view, id))
  if (foundView && others.length === 0) return foundView
  const hint = foundView ? 'give more of its id' : '/resume lists the latest ones'
  throw new Error(`There is ${foundView ? 'more than one' : 'no'} conversation ${id}; ${hint}.`)
}
