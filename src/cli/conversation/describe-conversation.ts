/** How lists show a conversation: people know it by what they have asked, where, and how long ago. */
import { basename } from 'node:path'
import type { ConversationView } from '../../contract/conversation.ts'
import { typedMessage } from '../chat/state/shell-command.ts'
import { oneLine } from '../../telemetry/plain-text.ts'

const NAME_CHARS = 60

/** Its title, or the beginning of its first message, in one line. */
export function nameOf({ title, preview = '' }: ConversationView): string {
  const text = oneLine((title ?? typedMessage(preview)).trim().replaceAll(/\s+/g, ' '))
  if (text === '') return '(no message yet)'
  return text.length > NAME_CHARS ? `${text.slice(0, NAME_CHARS - 1).toWellFormed()}…` : text
}

export const stateOf = ({ attended, status }: ConversationView): string => (attended ? 'open in a chat' : status)

/** The last part of its directory, which is what people call a project. */
export const placeOf = ({ workdir }: ConversationView): string => oneLine(basename(workdir))

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** The time since its last event, such as `5m`. */
export function ageOf({ updated_at }: Pick<ConversationView, 'updated_at'>, now = Date.now()): string {
  const ms = Math.max(0, now - Date.parse(updated_at))
  if (ms < MINUTE) return 'now'
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}m`
  return ms < DAY ? `${Math.floor(ms / HOUR)}h` : `${Math.floor(ms / DAY)}d`
}
