/** Loads the interactive chat: `startChat` of `chat/start-chat.ts`. */
import type { StartChat } from './chat-seam.ts'

export function loadChat(): Promise<StartChat> {
  return Promise.reject(new Error('this version has no interactive chat yet; use --no-tui with a prompt.'))
}
