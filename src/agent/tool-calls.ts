/**
 * Executes a tool call: looks the tool up, checks the input, runs it, and stores its one result. Never throws for
 * errors of a tool.
 */
import type { EventDraft } from '../contract/events/event.ts'
import { settlesWithin } from '../lib/bounded-wait.ts'
import { Queue } from '../lib/queue.ts'
import type { ModelTool } from '../llm/llm.ts'
import type { ToolCall, ToolOutcome } from '../state/tool-call.ts'
import { failure } from '../state/tool-call.ts'
import type { ToolAccess } from '../policy/tool-access.ts'
import type { QuestionCall } from '../state/question-intents.ts'
import { questionCalls } from './question-calls.ts'
import type { CallHooks, HookedResult } from './call-hooks.ts'
import type { ChangingTools } from './describe-tool.ts'
import { createDescriber } from './describe-tool.ts'
import { redactOutput } from './redact-output.ts'
import { accessOf, readInput } from './tool-input.ts'
import type { ResultDraft } from './history/tool-messages.ts'
import type { LiveOutputDeps } from './live-output.ts'
import { createLiveOutput } from './live-output.ts'
import { UnstoredResults } from './unstored-results.ts'
import { mayBegin, type Lease } from '../storage/lease/lease.ts'
import type { CallOutcome, Tool, ToolContext } from '../tools/tool.ts'

/** `finishes`: the tool ends the run; `finalText` is its text. */
export type FinishedCall = { readonly finishes: false } | { readonly finishes: true; readonly finalText: string }

export type ToolCallsDeps = LiveOutputDeps & {
  readonly tools: readonly Tool[]
  readonly changing?: ChangingTools | undefined
  /** See `createDescriber`. */
  readonly settings?: () => object
  readonly context: () => Omit<ToolContext, 'toolUseId' | 'approvedDefinition' | 'signal' | 'onOutput'>
  readonly emit: (drafts: readonly EventDraft[]) => Promise<void>
  /** Returns advice for the model to add to this result, if any. */
  readonly adviceFor: (result: ResultDraft) => string | undefined
  readonly onCrash: (error: unknown, call: ToolCall) => void
  /** Calls the listener when nothing can be stored any more. Returns an unsubscribe function. */
  readonly onLogClosed?: (listener: () => void) => () => void
  /** Calls begin only while it is held. */
  readonly lease?: Lease | undefined
  /** Hooks that follow a call, if there are any now. */
  readonly hooks?: () => CallHooks | undefined
}

/** How long to wait for a tool that was asked to end, in milliseconds. */
const INTERRUPT_GRACE_MS = 1500

/** How a call begins: `denial` is the reason why it does not run. */
type Beginning = {
  readonly denial?: string | undefined
  readonly onStoring?: ((result: ResultDraft) => void) | undefined
}

type RunningCall = { readonly promise: Promise<FinishedCall>; readonly abort: AbortController }

/**
 * The calls of one conversation. A call that a pause left running is still in here when the next run reaches it, and is
 * awaited instead of run a second time. `run` rejects only if its result could not be stored.
 */
export class ToolCalls {
  readonly #deps: ToolCallsDeps
  readonly #byName: ReadonlyMap<string, Tool>
  readonly #describe: () => readonly ModelTool[]
  readonly #hasQuestions: boolean
  readonly #running = new Map<string, RunningCall>()
  readonly #unstored: UnstoredResults<ToolCall, HookedResult>
  readonly #storing = new Queue({ limit: 1 })

  constructor(deps: ToolCallsDeps) {
    this.#deps = deps
    this.#byName = new Map(deps.tools.map((tool) => [tool.name, tool]))
    this.#describe = createDescriber(deps)
    this.#hasQuestions = deps.tools.some((tool) => 'questions' in tool)
    this.#unstored = new UnstoredResults({
      store: (call) => this.run(call),
      onLogClosed: deps.onLogClosed ?? (() => () => {}),
    })
  }

  /** What a model request lists. The same array until it changes. */
  get descriptions(): readonly ModelTool[] {
    return this.#describe()
  }

  /** Undefined without tools that come and go. */
  get prepare(): ChangingTools['prepare'] {
    return this.#deps.changing?.prepare
  }

  render(toolName: string, output: unknown): string {
    return renderOutput(this.#toolNamed(toolName), output)
  }

  run(call: ToolCall): Promise<FinishedCall> {
    return this.#begin(call, {})
  }

  /**
   * Runs calls in parallel; all of them start before it returns. Of a call in `denials` only the reason is stored, as its
   * result. Each result is stored when its call has ended. Resolves to the last call that finishes the run, if there is one.
   * Rejects if a result could not be stored. `onStoring` receives each result when its storing has begun, unless a call may
   * finish the run. It must not throw.
   */
  async runInParallel(
    calls: readonly ToolCall[],
    denials?: ReadonlyMap<string, string>,
    onStoring?: (result: ResultDraft) => void,
  ): Promise<FinishedCall> {
    const mayFinish = calls.some(({ name }) => this.#toolNamed(name)?.finishes)
    const beginning = mayFinish ? {} : { onStoring }
    const ends = calls.map((call) => this.#begin(call, { ...beginning, denial: denials?.get(call.toolUseId) }))
    // Wait for all of them, also after a failure.
    await Promise.allSettled(ends)
    const finishedCalls = await Promise.all(ends)
    return finishedCalls.findLast(({ finishes }) => finishes) ?? { finishes: false }
  }

  /** Returns true if the tool changes nothing, so that its calls may run in parallel. */
  isReadOnly(name: string): boolean {
    return this.#toolNamed(name)?.readOnly === true
  }

  /** Returns true if its calls are worked on by subagents. */
  callsSubagent(name: string): boolean {
    return this.#toolNamed(name)?.callsSubagent === true
  }

  /** Returns true if it was started: it is running, or its result waits to be stored. */
  hasBegun(toolUseId: string): boolean {
    return this.#running.has(toolUseId) || this.#unstored.has(toolUseId)
  }

  /** Returns which of these calls, none of which has begun, are questions to the user. Cheap without tools that ask. */
  questionsIn(calls: readonly ToolCall[], denials: ReadonlyMap<string, string>): readonly QuestionCall[] {
    return this.#hasQuestions ? questionCalls(this.#byName, calls, denials) : []
  }

  /** Returns the input as the tool receives it, or why the call would be refused. */
  readInput(name: string, input: unknown): ReturnType<typeof readInput> {
    return readInput(this.#toolNamed(name), input)
  }

  /** Returns what the call would do. Nothing, if its input is refused. */
  accessOf({ name, input }: Pick<ToolCall, 'name' | 'input'>): ToolAccess {
    return accessOf(this.#toolNamed(name), input)
  }

  /** The hash of the definition of a tool that may change. */
  definitionOf(name: string): string | undefined {
    return this.#toolNamed(name)?.definitionHash
  }

  /**
   * Ends the running calls; each still gets its result, as `interrupted`. Resolves when all have it, or without those
   * that ignore their signal: the caller has promised an answer within two seconds.
   */
  interrupt(): Promise<void> {
    return interruptAll([...this.#running.values()])
  }

  /** Stores the results that could not be stored before. Rejects if they still cannot be. */
  storeResults(): Promise<void> {
    return this.#unstored.storeAll()
  }

  #toolNamed(name: string): Tool | undefined {
    return this.#byName.get(name) ?? this.#deps.changing?.find(name)
  }

  #begin(call: ToolCall, beginning: Beginning): Promise<FinishedCall> {
    const { toolUseId } = call
    const already = this.#running.get(toolUseId)
    if (already) return already.promise
    const abort = new AbortController()
    const promise = this.#settle(call, abort.signal, beginning).finally(() => {
      this.#running.delete(toolUseId)
      if (this.#unstored.has(toolUseId)) this.#unstored.tryLater(call)
    })
    this.#running.set(toolUseId, { promise, abort })
    return promise
  }

  async #settle(call: ToolCall, signal: AbortSignal, { denial, onStoring }: Beginning): Promise<FinishedCall> {
    const [deps, unstoredResults] = [this.#deps, this.#unstored]
    const execution = () =>
      denial === undefined ? execute(deps, this.#toolNamed(call.name), call, signal) : failure('denied', denial)
    const keptResult = unstoredResults.get(call.toolUseId)
    const ownResult = keptResult ?? (await toResult(deps, call, execution))
    if (!ownResult) return { finishes: false }
    const hooks = keptResult ? undefined : deps.hooks?.()
    const verdict = hooks?.areAny() ? await hooks.after(call, { result: ownResult.result, denial }, signal) : undefined
    const ran = verdict ? withEvents(ownResult.events, verdict) : ownResult
    unstoredResults.keep(call.toolUseId, ran)
    // One after the other: the advice depends on the earlier results.
    const result = await this.#storing.run(async () => {
      const shownResult = keptResult?.result ?? withAdvice(deps, ran.result)
      unstoredResults.keep(call.toolUseId, { ...ran, result: shownResult })
      const storing = deps.emit([...ran.events, shownResult])
      onStoring?.(shownResult)
      await storing
      unstoredResults.forget(call.toolUseId)
      return shownResult
    })
    const tool = this.#toolNamed(call.name)
    return tool?.finishes && !result.is_error
      ? { finishes: true, finalText: renderOutput(tool, result.output) }
      : { finishes: false }
  }
}

async function interruptAll(calls: readonly RunningCall[]): Promise<void> {
  for (const call of calls) call.abort.abort()
  await settlesWithin(INTERRUPT_GRACE_MS, Promise.allSettled(calls.map((call) => call.promise)))
}

/** Undefined if the call stays open. */
async function toResult(
  deps: ToolCallsDeps,
  call: ToolCall,
  execution: () => CallOutcome | Promise<CallOutcome>,
): Promise<HookedResult | undefined> {
  const startedAt = performance.now()
  const { output, error, truncated, fullOutputPath, changes, staysOpen, events = [] } = await execution()
  if (staysOpen) return undefined
  const durationMs = performance.now() - startedAt
  const result: ResultDraft = {
    type: 'ToolResult',
    source: 'environment',
    ...(call.runId !== undefined && { run_id: call.runId }),
    tool_use_id: call.toolUseId,
    ...(call.isChanged && { ran_input: call.input, ...(call.changedBy && { changed_by: call.changedBy }) }),
    ...(call.hook?.context !== undefined && { context: call.hook.context }),
    output: redactOutput(output, deps.redactor.redact),
    is_error: error !== undefined,
    ...(error && { error_type: error.type, error_message: deps.redactor.redact(error.message) }),
    duration_ms: Math.round(durationMs * 1000) / 1000,
    ...(truncated && { truncated }),
    ...(fullOutputPath !== undefined && { full_output_path: fullOutputPath }),
    ...(changes && { changes: [...changes] }),
  }
  return { result, events }
}

function withAdvice({ adviceFor }: ToolCallsDeps, result: ResultDraft): ResultDraft {
  const advice = adviceFor(result)
  return advice === undefined ? result : { ...result, advice }
}

const withEvents = (events: readonly EventDraft[], hookedResult: HookedResult): HookedResult =>
  events.length > 0 ? { ...hookedResult, events: [...events, ...hookedResult.events] } : hookedResult

async function execute(
  deps: ToolCallsDeps,
  tool: Tool | undefined,
  call: ToolCall,
  signal: AbortSignal,
): Promise<ToolOutcome> {
  if (!tool) {
    const knownTools = [...deps.tools, ...(deps.changing?.listed ?? [])]
    const names = knownTools.map(({ name }) => name).join(', ') || 'none'
    return failure('unknown_tool', `There is no tool named ${JSON.stringify(call.name)}. The tools are: ${names}.`)
  }
  const toolInput = readInput(tool, call.input)
  if ('fault' in toolInput) return failure('invalid_input', toolInput.fault)
  if (deps.lease && !(await mayBegin(deps.lease, signal))) return failure('interrupted', 'It did not begin.')
  const live = createLiveOutput(deps, call.toolUseId)
  try {
    const { toolUseId, approvedDefinition } = call
    const context = { ...deps.context(), toolUseId, approvedDefinition, signal, onOutput: live.add }
    const outcome = await tool.run(toolInput.accepted, context)
    live.end()
    return { ...outcome, output: asJson(outcome.output) }
  } catch (error) {
    if (tool.callsSubagent) throw error
    deps.onCrash(error, call)
    return failure('failed', `The tool failed: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Throws for values that JSON cannot express: they could not be stored, and the call would never have a result. */
function asJson(output: unknown): unknown {
  return output === undefined ? '' : JSON.parse(JSON.stringify(output))
}

function renderOutput(tool: Tool | undefined, output: unknown): string {
  if (typeof output === 'string') return output
  try {
    if (tool?.render) return tool.render(output)
  } catch {
    // Another version of the tool stored it; the model reads it unchanged.
  }
  return JSON.stringify(output) ?? ''
}
