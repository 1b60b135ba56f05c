/** Why a command does not continue a conversation: somebody works with it, or it would get a weaker mode unasked. */
import type { ConversationView } from '../../contract/conversation.ts'
import type { Status } from '../../contract/events/status.ts'
import type { PermissionMode } from '../../contract/values/permission.ts'
import { UsageError } from '../command-line/usage-error.ts'

const WAITING: ReadonlySet<Status> = new Set<Status>([
  'waiting_for_confirmation',
  'waiting_for_input',
  'waiting_for_client',
])

/** What each mode that asks less than `default` means for a person. */
const WEAK: ReadonlyMap<string, string> = new Map<PermissionMode, string>([
  ['accept_edits', 'files are changed without asking'],
  ['bypass', 'every call runs without asking'],
])

/** Undefined unless the mode asks less than `default`. */
export function describeWeakMode(mode: string): string | undefined {
  const meaning = WEAK.get(mode)
  return meaning && `permission mode ${mode}: ${meaning}.`
}

/** A mode that asks less must be given again: who resumes may not know what was chosen for another task. */
export function requireGivenMode({ id, state }: ConversationView, givenMode: PermissionMode | undefined): void {
  const mode = state.permission_mode
  const meaning = givenMode === undefined ? WEAK.get(mode) : undefined
  if (meaning !== undefined)
    throw new UsageError(
      `conversation ${id} has the permission mode ${mode}: ${meaning}. Continue it with --permission-mode ${mode}, or with another mode.`,
    )
}

/** Returns what somebody else does with the conversation; undefined: nothing. */
export function useByOthers({ attended, status }: ConversationView): string | undefined {
  if (attended) return 'is open in a chat'
  return status === 'running' ? 'has an active run' : undefined
}

/** True if something works in it, somebody has it open, or it waits for somebody. */
export const isInUse = (view: ConversationView): boolean =>
  view.unfinished === true || useByOthers(view) !== undefined || WAITING.has(view.status)

/**
 * Serves commands without the chat. Throws if they would disturb a person in a chat, steer the run of another program,
 * or, with a message, deny what waits for an answer.
 */
export function refuseDisturbance(view: ConversationView, hasMessage: boolean): void {
  const { id, attended, status } = view
  const other = 'Name another one with --resume, or leave the option out for a new one.'
  if (attended) throw new UsageError(`conversation ${id} is open in a chat: close the chat first. ${other}`)
  if (!hasMessage) return
  if (status === 'running')
    throw new UsageError(
      `conversation ${id} has an active run: wait for its end, or follow it without a prompt. ${other}`,
    )
  if (WAITING.has(status))
    throw new UsageError(
      `conversation ${id} waits for an answer, which a message would deny: continue it without a prompt. ${other}`,
    )
}
