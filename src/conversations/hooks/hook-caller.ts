/**
 * Calls the hooks of one conversation: selects them by its configuration, builds their payload, and redacts what they
 * answer. It stores nothing.
 */
import type { PermissionMode } from '../../contract/values/permission.ts'
import type { HookPoint } from '../../contract/hooks/hook-point.ts'
import { HOOK_POINTS } from '../../contract/hooks/hook-point.ts'
import type { HookAnswer } from '../../hooks/hook-answer.ts'
import type { HookedIn } from '../../hooks/hook-event.ts'
import { toHookEvent } from '../../hooks/hook-event.ts'
import type { HookDraft } from '../../state/hook-decisions.ts'
import type { HookRun, RunHooksDeps } from '../../hooks/run-hooks.ts'
import { runHooks } from '../../hooks/run-hooks.ts'
import type { CallbackHook, CallbacksOf } from '../../hooks/select-hooks.ts'
import { hasHooksAt, selectHooks } from '../../hooks/select-hooks.ts'
import { mapStrings } from '../../lib/json/map-strings.ts'
import { Queue } from '../../lib/queue.ts'
import { modeOf } from '../../state/run-overrides.ts'
import type { LiveState } from '../live/live-state.ts'

export type HookCallerDeps = Omit<RunHooksDeps, 'turns' | 'workdir'> & {
  readonly state: LiveState
  readonly redact: (text: string) => string
  readonly callbacksOf: CallbacksOf
}

/** `names`: see `selectHooks`. */
export type HookCall = {
  readonly point: HookPoint
  readonly names?: readonly string[]
  readonly fields: Readonly<Record<string, unknown>>
  readonly toolUseId?: string
  /** Nobody waits for it: it never delays hooks that the agent waits for. */
  readonly inBackground?: boolean
}

/** Hooks of one conversation that run at the same time. */
const MAX_RUNNING = 8

/** The hooks that run in the background, besides them. */
const MAX_IN_BACKGROUND = 4

/** The names that Claude Code has for the modes. */
const MODES: Readonly<Record<PermissionMode, string>> = {
  default: 'default',
  accept_edits: 'acceptEdits',
  plan: 'plan',
  bypass: 'bypassPermissions',
  deny: 'dontAsk',
  callback: 'default',
}

/** What the hooks of one agent need. */
export type AgentHookCaller = Pick<
  HookCaller,
  'has' | 'hasAny' | 'expect' | 'call' | 'eventsOf' | 'isIdle' | 'close' | 'forSubagent'
>

/** A subagent, as the payload of hooks names it. */
export type HookedAgent = { readonly id: string; readonly name: string }

export class HookCaller {
  readonly #deps: HookCallerDeps
  readonly #queue = new Queue({ limit: MAX_RUNNING })
  readonly #background = new Queue({ limit: MAX_IN_BACKGROUND })
  readonly #closing = new AbortController()
  #running = 0

  constructor(deps: HookCallerDeps) {
    this.#deps = deps
  }

  /** Returns the hooks of a subagent: their payloads name it. They end with this. */
  forSubagent({ id: agent_id, name: agent_type }: HookedAgent): AgentHookCaller {
    return {
      isIdle: true,
      close: () => {},
      has: (point, names) => this.has(point, names),
      hasAny: () => this.hasAny(),
      expect: (point, names) => this.expect(point, names),
      call: (call, signal) => this.call({ ...call, fields: { agent_id, agent_type, ...call.fields } }, signal),
      eventsOf: (point, runs, at) => this.eventsOf(point, runs, at),
      forSubagent: (agent) => this.forSubagent(agent),
    }
  }

  get isIdle(): boolean {
    return this.#running === 0
  }

  /** True if hooks are configured at this point, and one of them fits if `names` are given. */
  has(point: HookPoint, names?: readonly string[]): boolean {
    const { hooks } = this.#deps.state.current.settings
    if (names) return selectHooks(hooks, this.#callbacks(), point, names).length > 0
    return hasHooksAt(hooks, this.#callbacks(), point)
  }

  hasAny(): boolean {
    const { hooks } = this.#deps.state.current.settings
    return this.#callbacks().length > 0 || (hooks !== undefined && HOOK_POINTS.some((point) => this.has(point)))
  }

  /** Tells the functions at this point of a call in the background. The caller calls the result when that has ended. */
  expect(point: HookPoint, names: readonly string[] = []): () => void {
    const { hooks } = this.#deps.state.current.settings
    const selectedHooks = selectHooks(hooks, this.#callbacks(), point, names)
    const ends = selectedHooks.map((hook) => (hook.type === 'callback' ? hook.expect?.() : undefined))
    return () => {
      for (const end of ends) end?.()
    }
  }

  /** Resolves in the order of the configuration; to nothing if no hook fits. Throws only the reason of a signal. */
  async call(
    { point, names = [], fields, inBackground = false }: Omit<HookCall, 'toolUseId'>,
    signal?: AbortSignal,
  ): Promise<HookRun[]> {
    const { current } = this.#deps.state
    const { id, settings } = current
    const hooks = selectHooks(settings.hooks, this.#callbacks(), point, names)
    if (hooks.length === 0) return []
    const payload = {
      session_id: id,
      transcript_path: '',
      cwd: settings.workdir,
      permission_mode: MODES[modeOf(current)],
      hook_event_name: point,
      ...fields,
    }
    const deps = {
      ...this.#deps,
      turns: inBackground ? this.#background : this.#queue,
      workdir: () => settings.workdir,
    }
    this.#running++
    try {
      const both = signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal
      const runs = await runHooks(deps, hooks, payload, both)
      return runs.map((run) => ({ ...run, answer: boundAnswer(this.#redacted(run.answer)) }))
    } finally {
      this.#running--
    }
  }

  eventsOf(point: HookPoint, runs: readonly HookRun[], at: Partial<HookedIn> = {}): HookDraft[] {
    const runId = this.#deps.state.current.run?.id
    return runs.map((run) => toHookEvent(point, run, { runId, ...at }))
  }

  /** Ends the hooks that run; `reason` is what their callers receive. */
  close(reason: unknown): void {
    this.#closing.abort(reason)
  }

  #callbacks(): readonly CallbackHook[] {
    return this.#deps.callbacksOf(this.#deps.state.current.id)
  }

  #redacted(answer: HookAnswer): HookAnswer {
    // Providers refuse lone surrogates.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- texts only: the shape stays
    return mapStrings(answer, (text) => this.#deps.redact(text.toWellFormed())) as HookAnswer
  }
}

/** Characters of each text for the model and the user, as in Claude Code. */
const MAX_TEXT_CHARS = 10_000

function boundAnswer(answer: HookAnswer): HookAnswer {
  const texts = (['block', 'reason', 'stop', 'context', 'message'] as const).flatMap((name) => {
    const text = answer[name]
    return text !== undefined && text.length > MAX_TEXT_CHARS ? [[name, cutText(text)] as const] : []
  })
  return texts.length > 0 ? { ...answer, ...Object.fromEntries(texts) } : answer
}

const cutText = (text: string) =>
  `${text.slice(0, MAX_TEXT_CHARS).toWellFormed()} [cut after ${MAX_TEXT_CHARS} characters]`

/** The strictest wins: the first reason of each kind counts. */
export function mergeAnswers(runs: readonly HookRun[]): HookAnswer {
  const answers = runs.map(({ answer }) => answer)
  const first = <K extends keyof HookAnswer>(name: K): HookAnswer[K] | undefined =>
    answers.find((answer) => answer[name] !== undefined)?.[name]
  const last = <K extends keyof HookAnswer>(name: K): HookAnswer[K] | undefined =>
    answers.findLast((answer) => answer[name] !== undefined)?.[name]
  const context = answers.flatMap((answer) => answer.context ?? []).join('\n')
  const [block, stop] = [first('block'), first('stop')]
  const [messages, text, output] = [last('updatedMessages'), last('updatedText'), last('updatedOutput')]
  return {
    ...(block !== undefined && { block }),
    ...(stop !== undefined && { stop }),
    ...(messages !== undefined && { updatedMessages: messages }),
    ...(text !== undefined && { updatedText: text }),
    ...(output && { updatedOutput: output }),
    ...(context && { context }),
  }
}
