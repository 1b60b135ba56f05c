/** Every event of a conversation: one discriminated union on `type`. Transient events are in `transient-event.ts`. */
import { z } from 'zod'
import {
  AssistantMessage,
  ToolUse,
  ToolResult,
  ModelRetry,
  OutputRequest,
  ErrorEvent,
  Result,
  SubagentStart,
} from './agent-events.ts'
import {
  SystemInit,
  UserMessage,
  MessageWithdrawn,
  WorkspaceSnapshot,
  StatusUpdate,
  ConfigUpdate,
  SecretsUpdate,
  FileUpdate,
  CommandResult,
  ProcessesEnded,
  TaskUpdate,
  ForkedFrom,
  ClientEvent,
  McpServerUpdate,
  NetworkAccess,
} from './conversation-events.ts'
import { Condensation } from './condensation.ts'
import { RequestAnswered, RequestClosed, RequestOpened } from './request-events.ts'
import { HookEvent } from './hook-events.ts'
import { FilesRestored, Rewound } from './rewound.ts'

/** The highest schema version that this server understands. A log with a higher one can be read, but not run. */
export const EVENT_VERSION = 5

/** Every durable event. */
export const Event = z
  .discriminatedUnion('type', [
    SystemInit,
    UserMessage,
    MessageWithdrawn,
    FilesRestored,
    WorkspaceSnapshot,
    Rewound,
    AssistantMessage,
    ToolUse,
    ToolResult,
    RequestOpened,
    RequestAnswered,
    RequestClosed,
    StatusUpdate,
    ConfigUpdate,
    SecretsUpdate,
    FileUpdate,
    CommandResult,
    ProcessesEnded,
    TaskUpdate,
    ForkedFrom,
    SubagentStart,
    ClientEvent,
    NetworkAccess,
    HookEvent,
    McpServerUpdate,
    ModelRetry,
    OutputRequest,
    Condensation,
    ErrorEvent,
    Result,
  ])
  .meta({ id: 'Event' })
export type Event = z.infer<typeof Event>
export type EventType = Event['type']
export type EventOf<T extends EventType> = Extract<Event, { type: T }>

export const EVENT_TYPES = Event.options.map((option) =>
  'shape' in option ? option.shape.type.value : option.options[0].shape.type.value,
)
export const EventTypeName = z.enum(EVENT_TYPES).meta({ id: 'EventType' })

/** What a writer passes to the log; the log adds the rest of the envelope. */
export type EventDraft = {
  [T in EventType]: DraftOf<EventOf<T>>
}[EventType]

type DraftOf<E> = E extends Event
  ? Omit<E, 'id' | 'seq' | 'timestamp' | 'conversation_id' | 'version' | 'cut_texts'>
  : never

/**
 * Returns the schema version to write. It is 5 for rewinds, 4 for withdrawn messages, 3 for requests, and 2 for settings with permission
 * rules or modes and for compactions: a server that understands earlier versions only would ignore them, run calls that the
 * rules deny or that wait for an answer, and send what was rewound or withdrawn, or no longer fits the model.
 */
export function versionOf(draft: EventDraft): number {
  switch (draft.type) {
    case 'Rewound':
    case 'FilesRestored':
      return 5
    case 'MessageWithdrawn':
      return 4
    case 'RequestOpened':
    case 'RequestAnswered':
    case 'RequestClosed':
      return 3
    case 'Condensation':
    case 'SubagentStart':
      return 2
    case 'SystemInit':
      return draft.project_settings || holdsPermissions(draft.options_summary) ? 2 : 1
    case 'ForkedFrom':
      return holdsPermissions(draft.options_summary) ? 2 : 1
    case 'StatusUpdate':
      // An older server would let the run do what this one does not.
      return draft.permission_mode === undefined ? 1 : 3
    case 'ConfigUpdate':
      return holdsPermissions(draft.changes) ? 2 : 1
    default:
      return 1
  }
}

const holdsPermissions = (settings: Record<string, unknown>): boolean =>
  settings['permission_rules'] !== undefined ||
  settings['project_settings'] !== undefined ||
  (settings['permission_mode'] !== undefined && settings['permission_mode'] !== 'bypass')
