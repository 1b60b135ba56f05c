/** The hooks around model requests, and at the beginning and the end of a run. */
import type { EventDraft } from '../../contract/events/event.ts'
import type { HookPoint } from '../../contract/hooks/hook-point.ts'
import type { HookRun } from '../../hooks/run-hooks.ts'
import { failedRun } from '../../hooks/run-hooks.ts'
import type { LlmAnswer, LlmRequest, ModelMessage } from '../../llm/llm.ts'
import { LlmError } from '../../llm/errors/llm-error.ts'
import type { AgentView } from '../live/live-state.ts'
import type { AgentHookCaller } from './hook-caller.ts'
import { mergeAnswers } from './hook-caller.ts'
import { readMessages, shownAnswer, shownMessages } from './rewritten-messages.ts'

export type ModelHooksDeps = {
  readonly caller: AgentHookCaller
  readonly state: AgentView
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
}

type Request = Pick<LlmRequest, 'system' | 'messages'>

export class ModelHooks {
  readonly #deps: ModelHooksDeps

  constructor(deps: ModelHooksDeps) {
    this.#deps = deps
  }

  /** See `LoopHooks`. */
  async beforeModel(
    model: string,
    request: () => Request,
    signal: AbortSignal,
  ): Promise<readonly ModelMessage[] | undefined> {
    const { caller } = this.#deps
    if (!caller.has('PreModelCall')) return undefined
    const { system, messages } = request()
    const whole = this.#mayRewrite ? { system_prompt: system, messages: shownMessages(messages) } : {}
    const fields = { model, message_count: messages.length, ...whole }
    const calledHooks = await caller.call({ point: 'PreModelCall', names: [model], fields }, signal)
    const readMessagesOf = new Map<HookRun, readonly ModelMessage[]>()
    const runs = calledHooks.map((run) => {
      if (run.answer.updatedMessages === undefined) return run
      if (!this.#mayRewrite) return ignoredRun(run)
      const rewrittenMessages = readMessages(run.answer.updatedMessages)
      if ('fault' in rewrittenMessages) return failedRun('PreModelCall', run, rewrittenMessages.fault)
      readMessagesOf.set(run, rewrittenMessages)
      return run
    })
    await this.#store('PreModelCall', runs)
    refuseBlocked('PreModelCall', runs)
    const last = runs.findLast((run) => readMessagesOf.has(run))
    return last && readMessagesOf.get(last)
  }

  /** See `LoopHooks`. */
  async afterModel(answer: LlmAnswer, signal: AbortSignal): Promise<LlmAnswer> {
    const { caller } = this.#deps
    if (!caller.has('PostModelCall')) return answer
    const fields = { model: answer.model, response: shownAnswer(answer) }
    const calledHooks = await caller.call({ point: 'PostModelCall', names: [answer.model], fields }, signal)
    const runs = calledHooks.map((run) =>
      run.answer.updatedText === undefined || this.#mayRewrite ? run : ignoredRun(run),
    )
    await this.#store('PostModelCall', runs)
    refuseBlocked('PostModelCall', runs)
    const { updatedText } = mergeAnswers(runs)
    if (updatedText === undefined) return answer
    // Its parts have the text of before, and signed reasoning belongs to that one.
    const { parts: _, ...rest } = answer
    return { ...rest, text: updatedText }
  }

  get #mayRewrite(): boolean {
    return this.#deps.state.current.settings.enable_message_rewrite_hooks ?? false
  }

  async #store(point: HookPoint, runs: readonly HookRun[]): Promise<void> {
    if (runs.length > 0) await this.#deps.emit(this.#deps.caller.eventsOf(point, runs))
  }
}

function ignoredRun(run: HookRun): HookRun {
  const { updatedMessages: _, updatedText: __, ...answer } = run.answer
  return { ...run, answer: { ...answer, message: 'What it rewrote was ignored: enable_message_rewrite_hooks is off.' } }
}

function refuseBlocked(point: HookPoint, runs: readonly HookRun[]): void {
  const { block, stop } = mergeAnswers(runs)
  const reason = block ?? stop
  if (reason !== undefined) throw new LlmError('config', `A ${point} hook ended the run: ${reason}`)
}
