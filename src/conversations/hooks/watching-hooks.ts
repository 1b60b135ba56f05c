/**
 * Hooks that only watch what has happened: files that were changed, tasks that were completed, runs that have failed. They
 * are called in the background, except after a failure, and nothing depends on their answers.
 */
import { basename } from 'node:path'
import type { Event, EventDraft } from '../../contract/events/event.ts'
import type { ErrorType } from '../../contract/events/status.ts'
import type { FileChangeKind } from '../../contract/files.ts'
import type { LlmError } from '../../llm/errors/llm-error.ts'
import type { HookDraft } from '../../state/hook-decisions.ts'
import type { AgentView } from '../live/live-state.ts'
import type { BackgroundHooks } from './background-hooks.ts'
import type { AgentHookCaller, HookCall } from './hook-caller.ts'
import { MAX_WAITING } from './pending-calls.ts'

export type WatchingHooksDeps = {
  readonly caller: AgentHookCaller
  readonly state: AgentView
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  readonly redact: (text: string) => string
  readonly background: BackgroundHooks
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
  workdir_missing: 'unknown',
}

export class WatchingHooks {
  readonly #deps: WatchingHooksDeps

  constructor(deps: WatchingHooksDeps) {
    this.#deps = deps
  }

  /** Calls the `FileChanged` hooks in the background. `path` is absolute. */
  fileChanged(path: string, how: FileChangeKind): void {
    const { caller, redact, background } = this.#deps
    if (!caller.has('FileChanged')) return
    const file = redact(path)
    const names = [basename(file), file]
    if (!caller.has('FileChanged', names)) return
    background.files.add(path, how, {
      call: async (event, lostCount) => {
        const fields = { file_path: file, event }
        await this.#call({ point: 'FileChanged', names, fields, inBackground: true }, { lost: lostCount })
      },
      onEnd: caller.expect('FileChanged', names),
    })
  }

  /** Calls the `TaskCompleted` hooks in the background, if the event says that a task is completed. */
  stored(event: Event): void {
    if (event.type !== 'TaskUpdate' || event.status !== 'completed') return
    const { caller, background } = this.#deps
    if (!caller.has('TaskCompleted')) return
    const { task_id, title: task_subject } = event
    background.others.add(`task ${task_id}`, undefined, {
      call: async (_, lostCount) => {
        const fields = { task_id, task_subject }
        await this.#call({ point: 'TaskCompleted', fields, inBackground: true }, { lost: lostCount })
      },
      onEnd: caller.expect('TaskCompleted'),
    })
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
      await this.#call({ point: 'StopFailure', names: [error, type], fields }, { signal })
    } catch (fault) {
      // The run was interrupted: it ends with its own failure nevertheless.
      if (!signal.aborted) throw fault
    }
  }

  async #call(
    { point, ...call }: Omit<HookCall, 'toolUseId'>,
    { signal, lost = 0 }: { signal?: AbortSignal; lost?: number },
  ): Promise<void> {
    const { caller, emit } = this.#deps
    if (!caller.has(point)) return
    const runs = await caller.call({ point, ...call }, signal)
    const [first, ...others] = caller.eventsOf(point, runs).map(watchingEvent)
    if (first) await emit([lost > 0 ? afterLoss(first, lost) : first, ...others])
  }
}

function afterLoss(event: HookDraft, lostCount: number): HookDraft {
  const loss = `Of earlier calls, ${lostCount} were dropped: more than ${MAX_WAITING} waited.`
  return { ...event, message: event.message === undefined ? loss : `${loss} ${event.message}` }
}

/** A hook that watches blocks nothing, and says nothing to the model. */
function watchingEvent(draft: HookDraft): HookDraft {
  const { context: _, ...event } = draft
  return event.action === 'block' || event.action === 'rewrite' ? { ...event, action: 'continue' } : event
}
