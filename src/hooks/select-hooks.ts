/** Selects the hooks that are called: those whose matcher fits, each once. */
import type { HookPoint } from '../contract/hooks/hook-point.ts'
import type { CommandHook, Hooks, HttpHook } from '../contract/hooks/hooks.ts'
import { readMatcher } from '../contract/hooks/matcher.ts'
import type { HookAnswer } from './hook-answer.ts'

/** A function in this process, instead of a command or a URL. It may ask a client. */
export type CallbackHook = {
  readonly type: 'callback'
  readonly point: HookPoint
  readonly name: string
  readonly matcher?: string
  /** Seconds. */
  readonly timeout?: number
  readonly on_failure?: 'continue' | 'block'
  /** A throw is a crash of the hook. Must end soon after the signal is aborted. */
  readonly call: (payload: Readonly<Record<string, unknown>>, signal: AbortSignal) => Promise<HookAnswer>
  /** Returns what to add to the reason when it did not answer in time. */
  readonly whyLate?: () => string
  /** A call in the background will follow. Returns what is called once, when that has ended or was dropped. */
  readonly expect?: () => () => void
}

/** The callback hooks of a conversation, by its id. */
export type CallbacksOf = (conversationId: string) => readonly CallbackHook[]

export type RunnableHook = CommandHook | HttpHook | CallbackHook

/** Longer names are not compared with patterns: such hooks are called. No tool of this server has one. */
const MAX_NAME_CHARS = 256

/** `names` are all names of what the point is about; none if the point has no matcher. */
export function selectHooks(
  hooks: Hooks | undefined,
  callbacks: readonly CallbackHook[],
  point: HookPoint,
  names: readonly string[],
): RunnableHook[] {
  const configuredHooks = (hooks?.[point] ?? []).flatMap((group) => (fits(group.matcher, names) ? group.hooks : []))
  const inProcess = callbacks.filter((hook) => hook.point === point && fits(hook.matcher, names))
  const once = new Map<unknown, RunnableHook>()
  for (const hook of [...configuredHooks, ...inProcess]) {
    const key = keyOf(hook)
    if (!once.has(key)) once.set(key, hook)
  }
  return [...once.values()]
}

/** True if `selectHooks` could return one. */
export const hasHooksAt = (hooks: Hooks | undefined, callbacks: readonly CallbackHook[], point: HookPoint): boolean =>
  (hooks?.[point]?.length ?? 0) > 0 || callbacks.some((hook) => hook.point === point)

function fits(matcher: string | undefined, names: readonly string[]): boolean {
  if (matcher === undefined || names.length === 0) return true
  const matcherParts = readMatcher(matcher)
  // Checked when it came; if it cannot be read nevertheless, the hook is called.
  if ('fault' in matcherParts || matcherParts.kind === 'all') return true
  if (matcherParts.kind === 'names') return names.some((name) => matcherParts.names.includes(name))
  return names.some(
    (name) => name.length > MAX_NAME_CHARS || matcherParts.patterns.some((pattern) => pattern.test(name)),
  )
}

const keyOf = (hook: RunnableHook): unknown => {
  if (hook.type === 'callback') return hook
  return hook.type === 'command' ? `command ${hook.command}` : `http ${hook.url}`
}
