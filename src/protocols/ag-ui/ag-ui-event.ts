/** Events and messages of AG-UI 1.0 as they are sent, and the ids in them, which follow from the log. */
import type { Event, EventOf } from '../../contract/events/event.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { textOf } from '../../contract/events/output-text.ts'

export const AG_UI_VERSION = '1.0'

export type AgUiEvent = { readonly type: string; readonly [field: string]: unknown }
export type AgUiMessage = { readonly id: string; readonly role: string; readonly [field: string]: unknown }

export const reasoningId = (messageId: string): string => `${messageId}:reasoning`

/** One invocation: an agent that is continued is another one. */
export const subagentRunIdOf = ({ seq }: Pick<Event, 'seq'>): string => String(seq)

const KEY = /^ag-ui (.+)$/s

/** What a message of a client is stored with. Keys of other clients have no space. */
export const keyOfMessage = (id: string): string => `ag-ui ${id}`

/** A message of another protocol has the id of its event. */
export const idOfUserMessage = ({ idempotency_key: key, id }: EventOf<'UserMessage'>): string =>
  KEY.exec(key ?? '')?.[1] ?? id

/** The messages of a client name the results of its tools themselves. */
export type ToolMessageIds = ReadonlyMap<string, string>

/** Parts that begin with it tell the agent what the application says of itself. */
export const CONTEXT_MARK = '<application_context>'

export const isContext = (part: UserPart): boolean => part.type === 'text' && part.text.startsWith(CONTEXT_MARK)

export const argumentsOf = (input: unknown): string => (typeof input === 'string' ? input : textOf(input))
