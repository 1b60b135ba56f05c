/** How lists show a conversation: people know it by what they have asked, where, and how long ago. */
import { basename } from 'node:path'
import type { ConversationView } from '../../contract/conversation.ts'
import { nameOfMessage, shortName } from '../chat/state/conversation-name.ts'
import { oneLine } from '../../telemetry/plain-text.ts'

/** Its title, or the beginning of its first message, in one line. */
export function nameOf({ title, preview = '' }: ConversationView): string {
  const name = title === undefined ? nameOfMessage(preview) : shortName(title)
  return name === '' ? '(no message yet)' : name
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
