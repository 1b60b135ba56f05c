/** Events and messages of AG-UI 1.0 as they are sent, and the ids in them, which follow from the log. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { textOf } from '../../contract/values/output-text.ts'
import { uuid7 } from '../../lib/uuid7.ts'

export const AG_UI_VERSION = '1.0'

export type AgUiEvent = { readonly type: string; readonly [field: string]: unknown }
export type AgUiMessage = { readonly id: string; readonly role: string; readonly [field: string]: unknown }

export const reasoningId = (messageId: string): string => `${messageId}:reasoning`

/** One invocation: an agent that is continued is another one. */
export const subagentRunIdOf = ({ seq }: Pick<Event, 'seq'>): string => String(seq)

const KEY = /^ag-ui [^ @]+(?:@(\d+))? (.+)$/s

/**
 * What a message of a client is stored with: each is another one, because a message that was taken back can be sent again. `contextAt`: which
 * of its parts is what the application says of itself. Keys of other clients have no space.
 */
export const keyOfMessage = (id: string, contextAt: number | undefined): string =>
  `ag-ui ${uuid7()}${contextAt === undefined ? '' : `@${contextAt}`} ${id}`

/** A message of another protocol has the id of its event. */
export const idOfUserMessage = ({ idempotency_key: key, id }: EventOf<'UserMessage'>): string =>
  KEY.exec(key ?? '')?.[2] ?? id

/** Returns what the application says of itself with a message, and what the user says. A text of the user is never the former. */
export function partsOfUserMessage({ idempotency_key: key, content }: EventOf<'UserMessage'>): {
  readonly context: UserPart | undefined
  readonly ownParts: readonly UserPart[]
} {
  const contextAt = Number(KEY.exec(key ?? '')?.[1] ?? -1)
  return { context: content[contextAt], ownParts: content.filter((_, at) => at !== contextAt) }
}

/** The messages of a client name the results of its tools themselves. */
export type ToolMessageIds = ReadonlyMap<string, string>

export const argumentsOf = (input: unknown): string => (typeof input === 'string' ? input : textOf(input))
