/**
 * Keeps the context of one run, or of one request of a client, below the model's window: decides when to compact, has
 * the summary written, and stores the one `Condensation` of a compaction.
 *
 * Nothing is stored before the summary is complete: a compaction that was cut off has changed nothing and starts again
 * with the next request.
 */
import type { EventDraft, EventOf } from '../../contract/events/event.ts'
import type { CompactionTrigger } from '../../contract/events/condensation.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { CompactionSettings } from '../../contract/compaction/settings.ts'
import { DEFAULT_THRESHOLD } from '../../contract/compaction/settings.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { ModelCatalog } from '../../llm/catalog/model-catalog.ts'
import type { Llm, LlmRequest, ModelTool } from '../../llm/llm.ts'
import { withOtherModel } from '../../llm/other-model.ts'
import type { History } from '../history/history.ts'
import type { SentMessages } from '../model/sent-messages.ts'
import { toModelRetry } from '../model/turn.ts'
import { tokensOfText, tokensOfTools } from '../history/context-size.ts'
import type { Plan, PlanInput } from './plan.ts'
import { maxSummaryChars, planCompaction, tokensAfter } from './plan.ts'
import type { SummaryWish } from './summary-request.ts'
import { requestInPlace, requestWithTranscript } from './summary-request.ts'
import type { SummaryOutcome } from './summarise.ts'
import { summarise } from './summarise.ts'

export type CompactorDeps = {
  readonly runId?: string
  readonly history: Pick<History, 'system' | 'messages' | 'entries' | 'forgottenThrough' | 'size'>
  /** Returns the current settings. */
  readonly settings: () => {
    readonly llm_config: LlmConfig
    readonly compaction?: CompactionSettings | undefined
  }
  /** The configuration for summaries. Default: that of the settings. */
  readonly summaryConfig?: () => LlmConfig
  /** What follows the system prompt in the run. */
  readonly runInstructions?: string | undefined
  readonly catalog: Pick<ModelCatalog, 'windowOf' | 'costOf'>
  /** The tools of a request now. */
  readonly tools: () => readonly ModelTool[]
  readonly createLlm: (config: LlmConfig) => Llm
  /** Returns the id of the run that is active, or waits for the user. */
  readonly activeRun: () => string | undefined
  /** Returns the task list as the model reads it. */
  readonly tasks: () => string | undefined
  /** Calls the `PreCompact` hooks; undefined if there are none. */
  readonly runHooks: (call: CompactionCall, signal: AbortSignal) => Promise<CompactionAdvice> | undefined
  /** Calls the `PostCompact` hooks; undefined if there are none. */
  readonly tellHooks: (done: CompactionDone, signal: AbortSignal) => Promise<unknown> | undefined
  /** Resolves when the events are durable. */
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  /** Absent if no message can be withdrawn meanwhile. */
  readonly sent?: SentMessages | undefined
}

export type CompactionCall = { readonly trigger: CompactionTrigger; readonly instructions: string | undefined }

/** `summary`: absent if only old outputs were removed. */
export type CompactionDone = { readonly trigger: CompactionTrigger; readonly summary: string | undefined }

/** `block`: the reason why the compaction must not happen. `context`: more instructions for the summary. */
export type CompactionAdvice = { readonly block?: string; readonly context?: string }

/** A hook has blocked a compaction that a client asked for. */
export class CompactionBlocked extends Error {}

type CondensationDraft = Extract<EventDraft, { type: 'Condensation' }>

/** The part that a transcript may fill of the window of the model that writes the summary. */
const TRANSCRIPT_PART = 0.5
/** The part of a context that was refused as too long, which should fit. */
const AFTER_REFUSAL_PART = 0.5
/** The part of the threshold that messages may take if the prompt and the tools alone reach it. */
const LEAST_ROOM_PART = 0.3
/** The window, in tokens, of a model whose window is unknown: all current ones have as much. */
const SMALL_WINDOW = 32_000
const CHARS_PER_TOKEN = 3

export class Compactor {
  readonly #deps: CompactorDeps

  constructor(deps: CompactorDeps) {
    this.#deps = deps
  }

  /** True if the next request would exceed the threshold. Cheap: every step asks. */
  isDue(): boolean {
    const limit = this.#isEnabled() ? this.#threshold() : undefined
    // What follows the first comparison reads all tools, and rarely happens.
    return limit !== undefined && this.#tokens() >= limit && this.#tokens() >= (this.#limit() ?? limit)
  }

  /**
   * Returns what was stored, or undefined if nothing can be saved, or if this is switched off. Throws the `LlmError` of
   * a summary request that failed for another reason than its content, `CompactionBlocked`, and the signal's reason when
   * aborted.
   */
  async compact(
    trigger: CompactionTrigger,
    signal: AbortSignal,
    instructions?: string,
  ): Promise<CondensationDraft | undefined> {
    if (trigger !== 'request' && !this.#isEnabled()) return undefined
    const input = this.#planInput(trigger)
    const plan = planCompaction(input)
    if (!plan) return undefined
    const { block, context } = (await this.#deps.runHooks({ trigger, instructions }, signal)) ?? {}
    signal.throwIfAborted()
    if (block !== undefined) {
      if (trigger === 'request') throw new CompactionBlocked(block)
      return undefined
    }
    const wish = [instructions, context].filter((text) => text !== undefined).join('\n\n') || undefined
    const summary = plan.forgotten_through_seq > 0 ? await this.#summarise(input, wish, signal) : undefined
    signal.throwIfAborted()
    const draft = this.#draft({ trigger, plan, input, summary, instructions: wish })
    await this.#deps.emit([draft])
    await this.#deps.tellHooks({ trigger, summary: draft.summary }, signal)
    return draft
  }

  #isEnabled(): boolean {
    return this.#deps.settings().compaction?.enabled ?? true
  }

  /** Undefined for a model whose window is unknown. */
  get #window(): number | undefined {
    return this.#deps.catalog.windowOf(this.#deps.settings().llm_config)
  }

  /** Leaves room for messages: if the prompt and the tools alone reached the threshold, each step would be compacted, and never be short enough. */
  #limit(): number | undefined {
    const threshold = this.#threshold()
    if (threshold === undefined) return undefined
    const fixedTokens = this.#deps.history.size.scaled(this.#fixedTokens())
    return fixedTokens < threshold ? threshold : fixedTokens + threshold * LEAST_ROOM_PART
  }

  #threshold(): number | undefined {
    const window = this.#window
    if (window === undefined) return undefined
    const { llm_config, compaction } = this.#deps.settings()
    const { max_output_tokens = 0 } = llm_config
    const share = window * (compaction?.threshold ?? DEFAULT_THRESHOLD)
    // The answer has to fit as well, but a limit that leaves no room for a conversation would be a mistake.
    return Math.min(share, window - Math.min(max_output_tokens, window / 2))
  }

  #tokens(): number {
    const { history } = this.#deps
    return history.size.of(history.messages, () => this.#fixedTokens())
  }

  #fixedTokens(): number {
    const { history, runInstructions, tools } = this.#deps
    return tokensOfText(history.system) + tokensOfText(runInstructions ?? '') + tokensOfTools(tools())
  }

  #planInput(trigger: CompactionTrigger): PlanInput {
    const { history } = this.#deps
    const tokens = this.#tokens()
    const knownLimit = this.#limit() ?? Number.POSITIVE_INFINITY
    return {
      entries: history.entries,
      forgottenThrough: history.forgottenThrough,
      tokens,
      fixedTokens: history.size.scaled(this.#fixedTokens()),
      // What was refused is too long, whatever the estimate says.
      limit: Math.min(knownLimit, trigger === 'context_window' ? tokens * AFTER_REFUSAL_PART : Math.max(tokens, 1)),
      scaled: (estimate) => history.size.scaled(estimate),
      forced: trigger === 'request',
      urgent: trigger === 'context_window',
      runId: this.#deps.activeRun(),
    }
  }

  async #summarise(input: PlanInput, instructions: string | undefined, signal: AbortSignal): Promise<SummaryOutcome> {
    const { history, runInstructions, tools, catalog, createLlm, emit, runId, sent } = this.#deps
    await sent?.settled()
    sent?.mark()
    const { compaction, llm_config } = this.#deps.settings()
    const current = this.#deps.summaryConfig?.() ?? llm_config
    const { tool_choice, ...rest } = withOtherModel(current, compaction?.model ?? current.model ?? '')
    const summaryLlm: LlmConfig = {
      ...rest,
      ...(tool_choice !== undefined && tool_choice !== 'required' && { tool_choice }),
    }
    const wish: SummaryWish = {
      system: history.system,
      runInstructions,
      // A copy: a message that is posted from here on is not part of it, and can be withdrawn.
      messages: [...history.messages],
      tools: tools(),
      maxChars: maxSummaryChars(input.limit),
      instructions,
    }
    return await summarise(
      {
        llm: createLlm(summaryLlm),
        requests: this.#requestsFor(wish, input, summaryLlm),
        maxChars: wish.maxChars,
        costOf: (usage) => catalog.costOf(summaryLlm, usage, undefined),
        onRetry: (retry) => emit([toModelRetry(retry, uuid7(), runId)]),
      },
      signal,
    )
  }

  /** The conversation itself, if it fits, and then shorter and shorter texts of it. */
  #requestsFor(wish: SummaryWish, { tokens, urgent }: PlanInput, summaryLlm: LlmConfig): (() => LlmRequest)[] {
    const window = this.#window
    const { model } = this.#deps.settings().llm_config
    const neededTokens = tokens + tokensOfText(wish.instructions ?? '') + wish.maxChars / CHARS_PER_TOKEN
    const fits = !urgent && summaryLlm.model === model && neededTokens <= (window ?? Number.POSITIVE_INFINITY)
    const inPlace = fits ? [() => requestInPlace(wish)] : []
    const ofModel = this.#deps.catalog.windowOf(summaryLlm) ?? window ?? Math.max(SMALL_WINDOW, tokens / 2)
    const most = Math.min(ofModel * TRANSCRIPT_PART, tokens) * CHARS_PER_TOKEN
    return [...inPlace, ...[1, 2, 4].map((part) => () => requestWithTranscript(wish, most / part))]
  }

  #draft(compaction: {
    trigger: CompactionTrigger
    plan: Plan
    input: PlanInput
    summary: SummaryOutcome | undefined
    instructions: string | undefined
  }): CondensationDraft {
    const { trigger, plan, input, summary, instructions } = compaction
    const { runId } = this.#deps
    const tasks = summary && this.#deps.tasks()
    return {
      type: 'Condensation',
      source: 'environment',
      ...(runId !== undefined && { run_id: runId }),
      trigger,
      ...plan,
      ...(summary && summaryFields(summary)),
      ...(tasks !== undefined && { tasks }),
      ...(instructions !== undefined && { instructions }),
      tokens_before: input.tokens,
      tokens_after: Math.round(tokensAfter(plan, input, summary?.text)),
    }
  }
}

function summaryFields({ text, failure, model, usage, costUsd }: SummaryOutcome): Partial<EventOf<'Condensation'>> {
  return {
    ...(text !== undefined && { summary: text }),
    ...(failure !== undefined && { failure }),
    model,
    usage,
    ...(costUsd !== undefined && { cost_usd: costUsd }),
  }
}
