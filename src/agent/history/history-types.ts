/** Names the events that the model's history consists of. */
import type { Event, EventOf, EventType } from '../../contract/events/event.ts'

const IS_SENT = {
  SystemInit: true,
  ForkedFrom: true,
  SubagentStart: true,
  Condensation: true,
  UserMessage: true,
  MessageWithdrawn: true,
  Rewound: true,
  FilesRestored: true,
  AssistantMessage: true,
  ToolUse: true,
  ToolResult: true,
  RequestOpened: false,
  RequestAnswered: false,
  RequestClosed: false,
  StatusUpdate: false,
  ConfigUpdate: true,
  SecretsUpdate: false,
  WorkspaceSnapshot: false,
  FileUpdate: false,
  CommandResult: false,
  ProcessesEnded: true,
  TaskUpdate: false,
  ClientEvent: false,
  NetworkAccess: false,
  HookEvent: true,
  OutputRequest: true,
  McpServerUpdate: false,
  ModelRetry: false,
  ErrorEvent: false,
  Result: true,
} as const satisfies Record<EventType, boolean>

type SentType = { [T in EventType]: (typeof IS_SENT)[T] extends true ? T : never }[EventType]

export const isSent = (event: Event): event is EventOf<SentType> => IS_SENT[event.type]

/** A reader that builds a history needs only these types. */
export const HISTORY_TYPES: ReadonlySet<string> = new Set(
  Object.entries(IS_SENT).flatMap(([type, isSent]) => (isSent ? [type] : [])),
)

/**
 * A history needs only these types of the events that a compaction forgot: messages that may have been kept, and the ids
 * of calls. Nearly all bytes of a long log are in the others.
 */
export const TYPES_OF_FORGOTTEN: ReadonlySet<string> = HISTORY_TYPES.difference(
  new Set(['AssistantMessage', 'ToolResult'] satisfies SentType[]),
)
