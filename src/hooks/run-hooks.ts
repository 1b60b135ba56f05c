/**
 * Calls hooks: in parallel, each with its time limit, and turns whatever happens into an outcome. The only file that
 * decides what a failure of a hook means.
 */
import type { HookPoint } from '../contract/hooks/hook-point.ts'
import { DEFAULT_HOOK_TIMEOUT_S } from '../contract/hooks/hooks.ts'
import type { Lease } from '../storage/lease/lease.ts'
import { orAborted, withinTime } from '../lib/bounded-wait.ts'
import type { Queue } from '../lib/queue.ts'
import { runCommandHook } from './command-hook.ts'
import type { CommandHookDeps } from './command-hook.ts'
import type { HookAnswer, HookEnd } from './hook-answer.ts'
import { NO_REASON } from './hook-answer.ts'
import type { HttpHookDeps } from './http-hook.ts'
import { callHttpHook } from './http-hook.ts'
import type { RunnableHook } from './select-hooks.ts'

export type HookPayload = Readonly<Record<string, unknown>> & { readonly hook_event_name: HookPoint }

export type RunHooksDeps = CommandHookDeps &
  HttpHookDeps & {
    /** Limits how many run at the same time. */
    readonly turns: Queue
    /** Hooks begin only while it is held. */
    readonly lease?: Lease | undefined
  }

/** `failed`: it did not answer; `answer` is what that means. */
export type HookRun = {
  readonly hook: RunnableHook
  readonly durationMs: number
  readonly answer: HookAnswer
  readonly failed: boolean
}

/** A failure of these hooks blocks, unless they say otherwise. */
const BLOCKING: ReadonlySet<HookPoint> = new Set(['PreToolUse', 'PreModelCall', 'PreCompact'])

/** Resolves in the order of the hooks. Throws only the reason of the signal, or that the lease is lost. */
export async function runHooks(
  deps: RunHooksDeps,
  hooks: readonly RunnableHook[],
  payload: HookPayload,
  signal: AbortSignal,
): Promise<HookRun[]> {
  signal.throwIfAborted()
  const text = JSON.stringify(payload)
  const runs = await Promise.all(
    hooks.map((hook) => deps.turns.run(() => runHook(deps, hook, { payload, text }, signal))),
  )
  signal.throwIfAborted()
  return runs
}

type HookMessage = { readonly payload: HookPayload; readonly text: string }

async function runHook(
  deps: RunHooksDeps,
  hook: RunnableHook,
  hookMessage: HookMessage,
  signal: AbortSignal,
): Promise<HookRun> {
  const point = hookMessage.payload.hook_event_name
  if (deps.lease?.isHeld === false) await deps.lease.whenHeld(signal)
  const startedAt = performance.now()
  const seconds = hook.timeout ?? DEFAULT_HOOK_TIMEOUT_S
  const end = await withinTime(seconds * 1000, signal, (inTime) => callHook(deps, hook, hookMessage, inTime)).catch(
    (error: unknown): HookEnd => ({ kind: 'failed', why: reasonOf(error, seconds, hook) }),
  )
  const durationMs = Math.round((performance.now() - startedAt) * 1000) / 1000
  return { hook, durationMs, failed: end.kind === 'failed', answer: answerTo(point, end, hook) }
}

/** The same run, whose answer turned out not to be usable. */
export function failedRun(point: HookPoint, run: HookRun, why: string): HookRun {
  return { ...run, failed: true, answer: answerTo(point, { kind: 'failed', why }, run.hook) }
}

function callHook(deps: RunHooksDeps, hook: RunnableHook, { payload, text }: HookMessage, signal: AbortSignal) {
  const point = payload.hook_event_name
  switch (hook.type) {
    case 'command':
      return runCommandHook(deps, hook, { point, text }, signal)
    case 'http':
      return callHttpHook(deps, hook, { point, text }, signal)
    case 'callback':
      return orAborted(hook.call(payload, signal), signal).then((answer): HookEnd => ({ kind: 'answered', answer }))
    default:
      return hook satisfies never
  }
}

function reasonOf(error: unknown, seconds: number, hook: RunnableHook): string {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `it did not answer within ${seconds} s${('whyLate' in hook && hook.whyLate?.()) || ''}`
  return error instanceof Error ? error.message : String(error)
}

function answerTo(point: HookPoint, end: HookEnd, { on_failure }: RunnableHook): HookAnswer {
  switch (end.kind) {
    case 'answered':
      return end.answer
    case 'warned':
      return { message: end.warning }
    case 'blocked':
      return blocking(point, end.reason || NO_REASON)
    case 'failed': {
      const blocks = (on_failure ?? (BLOCKING.has(point) ? 'block' : 'continue')) === 'block'
      return { ...(blocks && blocking(point, `The hook failed: ${end.why}.`)), message: end.why }
    }
    default:
      return end satisfies never
  }
}

const blocking = (point: HookPoint, reason: string): HookAnswer =>
  point === 'PreToolUse' || point === 'PermissionRequest' ? { decision: 'deny', reason } : { block: reason }
