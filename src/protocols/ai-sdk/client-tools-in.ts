/** The names of the tools that clients of a conversation execute. */
import type { Conversation } from '../../conversations/conversation.ts'

export const clientToolsIn = ({ state }: Conversation): ReadonlySet<string> =>
  new Set((state.settings.client_tools ?? []).map(({ name }) => name))
