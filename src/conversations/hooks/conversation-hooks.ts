/**
 * The hooks of one conversation, from the first run to the end: everything that others ask of hooks. It only connects
 * parts: `hook-caller.ts` calls hooks, `tool-hooks.ts` and `model-hooks.ts` decide what follows for calls and requests.
 */
import type { CompactionAdvice, CompactionCall, CompactionDone } from '../../agent/compaction/compactor.ts'
import type { LoopHooks } from '../../agent/loop-hooks.ts'
import { adviceOnTexts } from '../../agent/repeats/habits.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { textOfParts } from '../../contract/values/output-text.ts'
import type { AskedToolUse } from '../../contract/values/permission.ts'
import { Problem } from '../../contract/problem.ts'
import type { HookAnswer } from '../../hooks/hook-answer.ts'
import { NO_REASON } from '../../hooks/hook-answer.ts'
import type { HookDraft, PromptHooks } from '../../state/hook-decisions.ts'
import { NEVER, withinTime } from '../../lib/bounded-wait.ts'
import { Queue } from '../../lib/queue.ts'
import { closedProblem } from '../../events/closed-problem.ts'
import type { BackgroundHooks } from './background-hooks.ts'
import type { AgentHookCaller, HookCall, HookedAgent } from './hook-caller.ts'
import { mergeAnswers } from './hook-caller.ts'
import { ModelHooks } from './model-hooks.ts'
import type { ToolHookParts } from './tool-hooks.ts'
import { ToolHooks } from './tool-hooks.ts'
import { WatchingHooks } from './watching-hooks.ts'

export type ConversationHooksDeps = ToolHookParts & {
  readonly redact: (text: string) => string
  /** Closed with these hooks. */
  readonly background: BackgroundHooks
  /** Absent for the main agent. */
  readonly subagent?: HookedAgent
}

/** How often hooks may have one run continue. */
const MAX_BLOCKED_STOPS = 8

/** The end of a conversation waits for its hooks this long, in milliseconds. */
const END_MS = 2000

export class ConversationHooks {
  readonly tools: ToolHooks
  readonly watching: WatchingHooks
  readonly #deps: ConversationHooksDeps
  readonly #caller: AgentHookCaller
  readonly #model: ModelHooks
  /** One message at a time: their order is the order of the requests. */
  readonly #prompts = new Queue({ limit: 1 })
  readonly #loop: LoopHooks
  #hasBegun = false

  constructor(deps: ConversationHooksDeps) {
    this.#deps = deps
    this.#caller = deps.caller
    this.watching = new WatchingHooks(deps)
    this.tools = new ToolHooks({ ...deps, watching: this.watching })
    this.#model = new ModelHooks(deps)
    this.#loop = this.#loopHooks()
  }

  /** True if no hook runs or waits for its turn. */
  get isIdle(): boolean {
    return this.#caller.isIdle && this.#deps.background.isIdle
  }

  /** The hooks of a subagent. They end with these. */
  forSubagent(subagent: HookedAgent, of: Pick<ToolHookParts, 'state' | 'toolCalls' | 'emit'>): ConversationHooks {
    return new ConversationHooks({ ...this.#deps, ...of, caller: this.#caller.forSubagent(subagent), subagent })
  }

  /** Undefined if there are none. */
  forLoop(): LoopHooks | undefined {
    return this.#caller.hasAny() ? this.#loop : undefined
  }

  /** True if hooks can decide about calls that need a permission. */
  areApprovers(): boolean {
    return this.#caller.has('PermissionRequest')
  }

  readsPrompts(): boolean {
    return this.#caller.has('UserPromptSubmit')
  }

  /**
   * Calls the `UserPromptSubmit` hooks, and then `post`, after those of earlier messages. Throws the `Problem`
   * `blocked_by_hook` if one of them blocks the message; of the message nothing is stored then. No hook is called for a
   * message that one of the earlier ones was: then it resolves to what `findAnswer` does.
   */
  async withPrompt<T>(
    parts: readonly UserPart[],
    post: (outcome: PromptHooks) => Promise<T>,
    findAnswer: () => Promise<T | undefined> = async () => undefined,
  ): Promise<T> {
    return await this.#prompts.run(async () => {
      const earlierAnswer = await findAnswer()
      if (earlierAnswer !== undefined) return earlierAnswer
      const { blocked, ...promptHooks } = await this.#hear(parts)
      if (!blocked) return await post(promptHooks)
      await this.#deps.emit(promptHooks.events)
      throw blocked
    })
  }

  /** The same for a message that comes before the first event of the log. */
  async checkFirst(parts: readonly UserPart[], signal: AbortSignal): Promise<PromptHooks> {
    const { blocked, ...promptHooks } = await this.#hear(parts, signal)
    if (blocked) throw blocked
    return promptHooks
  }

  /**
   * Calls the hooks of a point that decides nothing about calls or requests, and stores their events: subagents and the
   * condensation of the history use it, too. `context` of the events is for the model.
   */
  async fire(call: Omit<HookCall, 'toolUseId'>, signal?: AbortSignal): Promise<HookAnswer> {
    if (!this.#caller.has(call.point)) return {}
    const { events, answer } = await this.#runHooks(call, signal)
    if (events.length > 0) await this.#deps.emit(events)
    return answer
  }

  /** Calls the `PreCompact` hooks and stores their events. What they add is for the summary only. */
  beforeCompaction(
    { trigger, instructions }: CompactionCall,
    signal: AbortSignal,
  ): Promise<CompactionAdvice> | undefined {
    if (!this.#caller.has('PreCompact')) return undefined
    const name = triggerName(trigger)
    const fields = { trigger: name, custom_instructions: instructions ?? '' }
    return this.#adviseCompaction({ point: 'PreCompact', names: [name], fields }, signal)
  }

  /** Calls the `PostCompact` hooks and stores their events. What they add is for the model. */
  afterCompaction({ trigger, summary }: CompactionDone, signal: AbortSignal): Promise<unknown> | undefined {
    if (!this.#caller.has('PostCompact')) return undefined
    const name = triggerName(trigger)
    const fields = { trigger: name, compact_summary: summary ?? '' }
    return this.fire({ point: 'PostCompact', names: [name], fields }, signal)
  }

  /** Calls the `Notification` hooks in the background. */
  notifyOf(calls: readonly AskedToolUse[]): void {
    if (!this.#caller.has('Notification')) return
    const names = calls.map(({ name }) => name)
    const message = `The agent needs your permission to use ${[...new Set(names)].join(', ')}.`
    const type = 'permission_prompt'
    const fields = { message, notification_type: type }
    this.#deps.background.others.add(`notification ${calls[0]?.tool_use_id}`, undefined, {
      call: async () => void (await this.fire({ point: 'Notification', names: [type], fields, inBackground: true })),
      onEnd: this.#caller.expect('Notification', [type]),
    })
  }

  /**
   * Ends all hooks that run, after the `SessionEnd` hooks of a conversation that has run. Those that wait in the background
   * do not begin any more.
   */
  async close(outcome: 'deleted' | 'closing'): Promise<void> {
    this.#deps.background.close()
    const call = { point: 'SessionEnd', names: ['other'], fields: { reason: 'other' } } as const
    if (this.#hasBegun && this.#caller.has('SessionEnd'))
      await withinTime(END_MS, NEVER, (signal) => this.fire(call, signal)).catch(() => {}) // nobody is left who could act on it
    this.#caller.close(closedProblem(outcome))
  }

  async #hear(
    parts: readonly UserPart[],
    signal?: AbortSignal,
  ): Promise<PromptHooks & { readonly blocked: Problem | undefined }> {
    const prompt = this.#deps.redact(textOfParts(parts))
    const { events, answer } = await this.#runHooks({ point: 'UserPromptSubmit', fields: { prompt } }, signal)
    const { block, stop, context } = answer
    const reason = block ?? stop
    return {
      blocked: reason === undefined ? undefined : blockedProblem(reason),
      // The message has the context.
      events: events.map(withoutContext),
      ...(context !== undefined && { context: `UserPromptSubmit hook: ${context}` }),
    }
  }

  async #runHooks(call: Omit<HookCall, 'toolUseId'>, signal?: AbortSignal) {
    const runs = await this.#caller.call(call, signal)
    return { runs, events: this.#caller.eventsOf(call.point, runs), answer: mergeAnswers(runs) }
  }

  async #adviseCompaction(call: Omit<HookCall, 'toolUseId'>, signal: AbortSignal): Promise<CompactionAdvice> {
    const { events, answer } = await this.#runHooks(call, signal)
    if (events.length > 0) await this.#deps.emit(events.map(withoutContext))
    const block = answer.block ?? answer.stop
    return { ...(block !== undefined && { block }), ...(answer.context !== undefined && { context: answer.context }) }
  }

  #loopHooks(): LoopHooks {
    return {
      begin: (signal) => this.#begin(signal),
      beforeCalls: (signal) => this.tools.beforeCalls(signal),
      afterCalls: (signal) => this.tools.afterCalls(signal),
      areCurrent: () => this.tools.areCurrent(),
      takeEnd: () => this.tools.takeEnd(),
      approve: (calls, signal) => this.tools.approve(calls, signal),
      beforeModel: (model, request, signal) => this.#model.beforeModel(model, request, signal),
      judgesAnswers: () => this.#caller.has('PostModelCall'),
      afterModel: (answer, signal) => this.#model.afterModel(answer, signal),
      beforeStop: (signal) => this.#beforeStop(signal),
      afterFailure: (error, signal) => this.watching.afterFailure(error, signal),
    }
  }

  /** Works once for each time that the conversation is opened. */
  async #begin(signal: AbortSignal): Promise<boolean> {
    if (this.#hasBegun) return false
    if (this.#deps.subagent) return await this.#beginSubagent(this.#deps.subagent, signal)
    const { readThrough, settings } = this.#deps.state.current
    const source = readThrough === 0 ? 'startup' : 'resume'
    const fields = { source, model: settings.llm_config.model ?? '' }
    const { stop } = await this.fire({ point: 'SessionStart', names: [source], fields }, signal)
    this.#hasBegun = true
    return stop !== undefined
  }

  async #beginSubagent({ name }: HookedAgent, signal: AbortSignal): Promise<boolean> {
    const isNew = (this.#deps.state.current.run?.steps ?? 0) === 0
    const { stop } = isNew ? await this.fire({ point: 'SubagentStart', names: [name], fields: {} }, signal) : {}
    this.#hasBegun = true
    return stop !== undefined
  }

  async #beforeStop(signal: AbortSignal): Promise<boolean> {
    const { caller, state, emit, subagent } = this.#deps
    const point = subagent ? 'SubagentStop' : 'Stop'
    if (!caller.has(point)) return false
    const { run, answered } = state.current
    const blockedStops = run?.blockedStops ?? 0
    // A run that only ends with the answer of one before has no text.
    const text = run?.finalText || (answered?.text ?? '')
    const fields = { stop_hook_active: blockedStops > 0, last_assistant_message: text }
    const names = subagent && { names: [subagent.name] }
    const { runs, events, answer } = await this.#runHooks({ point, ...names, fields }, signal)
    const reason = answer.stop === undefined && blockedStops < MAX_BLOCKED_STOPS ? answer.block : undefined
    const advice = [adviceOnTexts(state.current.repeats) ?? []].flat()
    const deciding = reason === undefined ? -1 : runs.findIndex((each) => each.answer.block !== undefined)
    const storedEvents = events.map((event, at) =>
      at === deciding
        ? { ...event, action: 'block' as const, context: [`${point} hook: ${reason}`, ...advice].join('\n\n') }
        : answer.stop === undefined
          ? withoutBlock(event)
          : event,
    )
    if (storedEvents.length > 0) await emit(storedEvents)
    return reason !== undefined
  }
}

/** One hook at most has the run continue: the first that blocks, as long as there were few. */
const withoutBlock = (event: HookDraft): HookDraft =>
  event.action === 'block' ? { ...event, action: 'continue' } : event

function withoutContext(event: HookDraft): HookDraft {
  const { context: _, ...rest } = event
  return rest
}

const triggerName = (trigger: CompactionCall['trigger']) => (trigger === 'request' ? 'manual' : 'auto')

const blockedProblem = (reason: string) =>
  new Problem('blocked_by_hook', `A hook blocked the message, which was not stored: ${reason || NO_REASON}`)
