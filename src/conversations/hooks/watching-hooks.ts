/**
 * Hooks that only watch what has happened: files that were changed, tasks that were completed, runs that have failed. They
 * are called in the background, except after a failure, and nothing depends on their answers.
 */
import { basename } from 'node:path'
import type { Event, EventDraft } from '../../contract/events/event.ts'
import type { ErrorType } from '../../contract/events/status.ts'
import type { FileChangeKind } from '../../contract/files.ts'
import { Problem } from '../../contract/problem.ts'
import type { LlmError } from '../../llm/llm.ts'
import type { HookDraft } from '../../state/hook-decisions.ts'
import type { AgentView } from '../live-state.ts'
import type { AgentHookCaller, HookCall } from './hook-caller.ts'

export type WatchingHooksDeps = {
  readonly caller: AgentHookCaller
  readonly state: AgentView
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  readonly redact: (text: string) => string
  readonly onFault: (error: unknown) => void
}

/** The names that Claude Code has for errors of models. */
const ERRORS: Readonly<Record<ErrorType, string>> = {
  auth: 'authentication_failed',
  quota: 'billing_error',
  rate_limit: 'rate_limit',
  context_window: 'invalid_request',
  content_filter: 'invalid_request',
  config: 'invalid_request',
  network: 'server_error',
  tool: 'unknown',
  internal: 'unknown',
}

export class WatchingHooks {
  readonly #deps: WatchingHooksDeps

  constructor(deps: WatchingHooksDeps) {
    this.#deps = deps
  }

  /** Calls the `FileChanged` hooks in the background. `path` is absolute. */
  fileChanged(path: string, how: FileChangeKind): void {
    if (!this.#deps.caller.has('FileChanged')) return
    const file = this.#deps.redact(path)
    this.#inBackground({
      point: 'FileChanged',
      names: [basename(file), file],
      fields: { file_path: file, event: how },
    })
  }

  /** Calls the `TaskCompleted` hooks in the background, if the event says that a task is completed. */
  stored(event: Event): void {
    if (event.type !== 'TaskUpdate' || event.status !== 'completed') return
    const fields = { task_id: event.task_id, task_subject: event.title }
    this.#inBackground({ point: 'TaskCompleted', fields })
  }

  /** Calls the `StopFailure` hooks. Rejects only if their events cannot be stored. */
  async afterFailure({ type, message }: LlmError, signal: AbortSignal): Promise<void> {
    const error = ERRORS[type]
    const { state, redact } = this.#deps
    const fields = {
      error,
      error_details: redact(message),
      last_assistant_message: state.current.run?.finalText ?? '',
    }
    try {
      await this.#call({ point: 'StopFailure', names: [error, type], fields }, signal)
    } catch (fault) {
      // The run was interrupted: it ends with its own failure nevertheless.
      if (!signal.aborted) throw fault
    }
  }

  #inBackground(call: Omit<HookCall, 'toolUseId'>): void {
    this.#call(call).catch((error: unknown) => (error instanceof Problem ? undefined : this.#deps.onFault(error)))
  }

  async #call({ point, ...call }: Omit<HookCall, 'toolUseId'>, signal?: AbortSignal): Promise<void> {
    const { caller, emit } = this.#deps
    if (!caller.has(point)) return
    const runs = await caller.call({ point, ...call }, signal)
    const events = caller.eventsOf(point, runs).map(watched)
    if (events.length > 0) await emit(events)
  }
}

/** A hook that watches blocks nothing, and says nothing to the model. */
function watched(said: HookDraft): HookDraft {
  const { context: _, ...event } = said
  return event.action === 'block' || event.action === 'rewrite' ? { ...event, action: 'continue' } : event
}
