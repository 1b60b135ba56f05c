/** The option `hooks`: commands and URLs, which the server calls, and functions of this program. */
import { z } from 'zod'
import type { HookPoint } from '../../contract/hooks/hook-point.ts'
import { HOOK_POINTS } from '../../contract/hooks/hook-point.ts'
import type { Hook, Hooks } from '../../contract/hooks/hooks.ts'
import { OfEachHook } from '../../contract/hooks/hooks.ts'
import { readMatcher } from '../../contract/hooks/matcher.ts'
import { readAnswer } from '../../hooks/hook-answer.ts'
import type { CallbackHook } from '../../hooks/select-hooks.ts'
import { invalid } from '../errors/invalid.ts'

/** What a hook is called with: the payload of docs/hooks.md. */
export type HookInput = Readonly<Record<string, unknown>> & { readonly hook_event_name: HookPoint }

/** Returns an answer as docs/hooks.md describes it, or nothing. A throw is a failure of the hook. */
export type HookCallback = (
  input: HookInput,
  toolUseId: string | undefined,
  context: { readonly signal: AbortSignal },
) => unknown

export type HookMatcher = {
  /** The calls that it is for. Absent: all. */
  readonly matcher?: string | undefined
  readonly hooks: readonly (HookCallback | Hook)[]
  /** Seconds until a function counts as failed. */
  readonly timeout?: number | undefined
  /** What a failure of a function means. */
  readonly onFailure?: 'continue' | 'block' | undefined
}

export type HooksOption = { readonly [Point in HookPoint]?: readonly HookMatcher[] | undefined }

/** A function of this program. `say` returns its answer as a command writes it; `call` reads that. */
export type FunctionHook = CallbackHook & {
  readonly say: (payload: Readonly<Record<string, unknown>>, signal: AbortSignal) => Promise<string>
}

export type SplitHooks = { readonly wire: Hooks | undefined; readonly callbacks: readonly FunctionHook[] }

export function splitHooks(option: HooksOption = {}): SplitHooks {
  const wire: Hooks = {}
  const callbacks: FunctionHook[] = []
  for (const [point, matchers] of pointsOf(option)) {
    for (const each of matchers) {
      refuseShape(point, each)
      const { matcher, hooks, timeout, onFailure } = each
      refuseMatcher(point, matcher)
      const others = hooks.filter((hook) => typeof hook !== 'function')
      if (others.length > 0)
        (wire[point] ??= []).push({ ...(matcher !== undefined && { matcher }), hooks: [...others] })
      for (const [at, call] of hooks.entries()) {
        if (typeof call !== 'function') continue
        const say: FunctionHook['say'] = (payload, signal) => textOf(point, call, payload, signal)
        callbacks.push({
          type: 'callback',
          point,
          name: call.name || `hooks.${point}.${at}`,
          ...(matcher !== undefined && { matcher }),
          ...(timeout !== undefined && { timeout }),
          ...(onFailure !== undefined && { on_failure: onFailure }),
          say,
          // The same reader as for the output of commands, so that a function can answer the same.
          call: async (payload, signal) => readAnswer(point, await say(payload, signal)),
        })
      }
    }
  }
  return { wire: Object.keys(wire).length > 0 ? wire : undefined, callbacks }
}

function* pointsOf(option: HooksOption): Generator<[HookPoint, readonly HookMatcher[]]> {
  const unknownName = Object.keys(option).find((name) => !HOOK_POINTS.some((point) => point === name))
  if (unknownName !== undefined)
    throw invalid(`hooks.${unknownName} is not a point of a run. The points are ${HOOK_POINTS.join(', ')}.`)
  for (const point of HOOK_POINTS) {
    const matchers = option[point] ?? []
    if (!Array.isArray(matchers)) throw invalid(`hooks.${point} must be a list of { matcher, hooks: [function] }.`)
    yield [point, matchers]
  }
}

/** Programs without types can pass anything. */
function refuseShape(point: HookPoint, hookGroup: unknown): void {
  const isMatcher =
    typeof hookGroup === 'object' && hookGroup !== null && 'hooks' in hookGroup && Array.isArray(hookGroup.hooks)
  if (!isMatcher) throw invalid(`hooks.${point} must be a list of { matcher, hooks: [function] }.`)
  const unknownName = Object.keys(hookGroup).find(
    (name) => !['matcher', 'hooks', 'timeout', 'onFailure'].includes(name),
  )
  if (unknownName !== undefined)
    throw invalid(`hooks.${point}: ${unknownName} is not a field; they are matcher, hooks, timeout and onFailure.`)
  const fault = Fields.safeParse(hookGroup).error?.issues[0]
  if (fault) throw invalid(`hooks.${point}: ${fault.path.join('.')}: ${fault.message}.`)
}

/**
 * The fields as a server checks them. A server in this process is not asked: it would take a misspelt `block` for
 * `continue`.
 */
const Fields = z.object({
  matcher: z.string().optional(),
  timeout: OfEachHook.timeout,
  onFailure: OfEachHook.on_failure,
})

function refuseMatcher(point: HookPoint, matcher: string | undefined): void {
  const matcherParts = matcher === undefined ? undefined : readMatcher(matcher)
  if (matcherParts && 'fault' in matcherParts) throw invalid(`hooks.${point}: the matcher ${matcherParts.fault}.`)
}

/** Throws what the function throws, and for an answer that is not JSON. */
async function textOf(
  point: HookPoint,
  call: HookCallback,
  payload: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<string> {
  const { tool_use_id: toolUseId } = payload
  const input = { ...payload, hook_event_name: point }
  const answer = await call(input, typeof toolUseId === 'string' ? toolUseId : undefined, { signal })
  if (typeof answer === 'string') return answer
  const text: string | undefined = JSON.stringify(answer ?? {})
  if (text === undefined) throw new TypeError('its answer is not JSON')
  return text
}
