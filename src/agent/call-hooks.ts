/** What the calls of an agent ask hooks, and tell them. */
import type { EventDraft } from '../contract/events/event.ts'
import type { FileChangeKind } from '../contract/files.ts'
import type { ToolCall } from '../state/tool-call.ts'
import type { ResultDraft } from './history/tool-messages.ts'

/** `events` are stored before the result. */
export type HookedResult = { readonly result: ResultDraft; readonly events: readonly EventDraft[] }

/** `denial`: why the call did not run. */
export type EndedCall = { readonly result: ResultDraft; readonly denial: string | undefined }

export type CallHooks = {
  /** True if `after` has something to do for calls. */
  readonly areAny: () => boolean
  /** Called when the tool has ended, or the call was denied, before its result is stored. Never rejects. */
  readonly after: (call: ToolCall, ended: EndedCall, signal: AbortSignal) => Promise<HookedResult>
  /** Called after each change of a file by a tool. Never throws. `path` is absolute. */
  readonly fileChanged: (path: string, how: FileChangeKind) => void
}
