/** Whether nothing happens in a conversation until somebody sends something. */
import type { Conversation } from '../../conversations/conversation.ts'

/** A call that the client executes waits within the run at first. */
export const isAtRest = ({ state, requests }: Conversation): boolean =>
  state.status !== 'running' || requests.list({ kinds: new Set(['client_tool']) }).length > 0
