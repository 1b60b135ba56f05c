/** The name of a conversation without a title: the beginning of what the person has typed first. */
import { oneLine } from '../../../telemetry/plain-text.ts'
import { typedMessage } from './shell-command.ts'

const NAME_CHARS = 60

/** One line of at most 60 characters; empty for a message without text. */
export const nameOfMessage = (text: string): string => shortName(typedMessage(text))

export function shortName(text: string): string {
  const line = oneLine(text.trim().replaceAll(/\s+/g, ' '))
  return line.length > NAME_CHARS ? `${line.slice(0, NAME_CHARS - 1).toWellFormed()}…` : line
}
