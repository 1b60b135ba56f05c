/** The event that a call of a hook leaves. */
import type { HookDraft } from '../state/hook-decisions.ts'
import type { HookPoint } from '../contract/hooks/hook-point.ts'
import type { HookAnswer } from './hook-answer.ts'
import type { HookRun } from './run-hooks.ts'
import type { RunnableHook } from './select-hooks.ts'

const MAX_NAME_CHARS = 200
const MAX_MESSAGE_CHARS = 4000

export type HookedIn = {
  readonly runId: string | undefined
  readonly toolUseId?: string | undefined
  /** Seq of the event that set the hooks, 0 for those of the creation. */
  readonly hooksAt?: number
}

export function toHookEvent(point: HookPoint, run: HookRun, { runId, toolUseId, hooksAt = 0 }: HookedIn): HookDraft {
  const { answer, failed } = run
  const { context, updatedInput, decision } = answer
  const message = answer.reason ?? answer.block ?? answer.stop ?? answer.message
  return {
    type: 'HookEvent',
    source: 'environment',
    ...(runId !== undefined && { run_id: runId }),
    hook_point: point,
    name: nameOf(run.hook),
    matched: true,
    duration_ms: run.durationMs,
    action: failed ? 'error' : actionOf(answer),
    ...(message !== undefined && { message: message.slice(0, MAX_MESSAGE_CHARS) }),
    ...(toolUseId !== undefined && { tool_use_id: toolUseId }),
    ...(decision !== undefined && { decision }),
    ...(updatedInput && { updated_input: updatedInput }),
    ...(context !== undefined && { context: `${point} hook: ${context}` }),
    ...(hooksAt > 0 && { hooks_seq: hooksAt }),
  }
}

function nameOf(hook: RunnableHook): string {
  const name = hook.type === 'callback' ? hook.name : hook.type === 'command' ? hook.command : hook.url
  return name.slice(0, MAX_NAME_CHARS)
}

function actionOf(answer: HookAnswer): HookDraft['action'] {
  const { block, decision, stop, updatedInput, updatedOutput, updatedMessages, updatedText } = answer
  if (block !== undefined || stop !== undefined || decision === 'deny') return 'block'
  const isRewritten = updatedInput ?? updatedOutput ?? updatedMessages ?? updatedText
  return isRewritten === undefined ? 'continue' : 'rewrite'
}
