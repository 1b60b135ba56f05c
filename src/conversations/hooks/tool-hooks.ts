/** The hooks around tool calls: before them, after them, and instead of a user's decision. */
import { randomUUID } from 'node:crypto'
import type { CallHooks, EndedCall, HookedResult } from '../../agent/call-hooks.ts'
import { givenParameters } from '../../agent/tool-input.ts'
import type { ToolCall } from '../../state/tool-call.ts'
import type { ResultDraft } from '../../agent/history/tool-messages.ts'
import type { HookDecision, HookDecisions, HookDraft } from '../../state/hook-decisions.ts'
import type { FileChangeKind } from '../../contract/files.ts'
import type { HookPoint } from '../../contract/hooks/hook-point.ts'
import type { AskedToolUse } from '../../contract/values/permission.ts'
import type { Input, ShownCall } from '../../hooks/claude-tools.ts'
import { showCall } from '../../hooks/claude-tools.ts'
import { NO_REASON } from '../../hooks/hook-answer.ts'
import type { HookRun } from '../../hooks/run-hooks.ts'
import { failedRun } from '../../hooks/run-hooks.ts'
import { isWorkedOn } from '../../state/subagents.ts'
import { modeOf } from '../../state/run-overrides.ts'
import type { HookCall } from './hook-caller.ts'
import type { ToolBatchDeps } from './tool-batch.ts'
import { ToolBatch } from './tool-batch.ts'
import type { WatchingHooks } from './watching-hooks.ts'

export type ToolHooksDeps = ToolHookParts & { readonly watching: Pick<WatchingHooks, 'fileChanged'> }

export type ToolHookParts = ToolBatchDeps

/** Requests for a permission about one call that hooks may answer. */
const MAX_ROUNDS = 5

type CallFacts = Pick<ToolCall, 'toolUseId' | 'name' | 'input'>

export class ToolHooks implements CallHooks {
  readonly #deps: ToolHooksDeps
  readonly #batch: ToolBatch
  #isEnding = false
  /** `hooksAt` of the last `beforeCalls`. */
  #hooksAt = 0
  /** How often `PermissionRequest` hooks were asked about each call of the last request. */
  #rounds: ReadonlyMap<string, number> = new Map()

  constructor(deps: ToolHooksDeps) {
    this.#deps = deps
    this.#batch = new ToolBatch(deps)
  }

  /**
   * Calls the `PreToolUse` hooks of all open calls about which they have said nothing yet. Their verdicts are in the
   * state when it resolves. Resolves to true if one of them ends the run.
   */
  async beforeCalls(signal: AbortSignal): Promise<boolean> {
    const { caller, state, emit, toolCalls } = this.#deps
    // Other hooks have not seen the calls that have ended.
    if (!this.areCurrent()) this.#batch.drop()
    this.#hooksAt = state.current.hooksAt
    this.#batch.note(state.current.openCalls)
    const calls = caller.has('PreToolUse') ? state.current.openCalls : []
    const isNew = ({ toolUseId, hook }: ToolCall) =>
      !hook && !toolCalls().hasBegun(toolUseId) && !isWorkedOn(state.current, toolUseId)
    const calledHooks = await Promise.all(
      calls.filter(isNew).map((call) => this.#callAbout('PreToolUse', call, {}, signal)),
    )
    // What former hooks said about the calls does not count any more.
    if (!this.areCurrent()) return await this.beforeCalls(signal)
    const events = calledHooks.flatMap(({ events: some }) => some)
    if (events.length > 0) await emit(events)
    return calledHooks.some(({ runs }) => runs.some(({ answer }) => answer.stop !== undefined))
  }

  /**
   * Calls the `PreToolUse` hooks for what another call does besides itself, as if it were a call of this tool. Returns why it
   * must not be done, if a hook denies, stops, asks about or changes it. Rejects when aborted.
   */
  async refusalOf(name: string, input: Input, signal: AbortSignal): Promise<string | undefined> {
    const { caller, state, emit } = this.#deps
    const { hooksAt, settings } = state.current
    // A new id: what hooks say is not about the call that is being worked on.
    const toolUseId = randomUUID()
    const payload = payloadOf(showCall(name, input, settings.workdir), toolUseId)
    const runs = await caller.call({ point: 'PreToolUse', ...payload }, signal)
    if (runs.length > 0) await emit(caller.eventsOf('PreToolUse', runs, { toolUseId, hooksAt }))
    // What former hooks said does not count any more.
    if (hooksAt !== state.current.hooksAt) return await this.refusalOf(name, input, signal)
    return refusalIn(runs)
  }

  areCurrent(): boolean {
    return this.#hooksAt === this.#deps.state.current.hooksAt
  }

  /** Decides what the `PermissionRequest` hooks answer; the strictest answer wins. */
  async approve(calls: readonly AskedToolUse[], signal: AbortSignal): Promise<HookDecisions | 'end'> {
    const { state, emit } = this.#deps
    const { hooksAt } = state.current
    const isNew = this.#countRounds(calls)
    const calledHooks = await Promise.all(
      calls.filter(isNew).map(async ({ tool_use_id: toolUseId, name, input }) => {
        const call = { toolUseId, name, input }
        return { toolUseId, ...(await this.#callAbout('PermissionRequest', call, SUGGESTIONS, signal)) }
      }),
    )
    const events = calledHooks.flatMap(({ events: some }) => some)
    if (events.length > 0) await emit(events)
    if (calledHooks.some(({ runs }) => runs.some(({ answer }) => answer.stop !== undefined))) return 'end'
    const isCallback = modeOf(state.current) === 'callback'
    const decisions = calls.flatMap(({ tool_use_id: toolUseId }) => {
      const { runs = [] } = calledHooks.find((each) => each.toolUseId === toolUseId) ?? {}
      return decisionOf(toolUseId, runs) ?? (isCallback ? [noAnswer(toolUseId)] : [])
    })
    return { hooksAt, decisions }
  }

  /** False for a call that the hooks have changed too often: each new input needs a permission again. */
  #countRounds(calls: readonly AskedToolUse[]): (call: AskedToolUse) => boolean {
    const before = this.#rounds
    this.#rounds = new Map(calls.map(({ tool_use_id: id }) => [id, (before.get(id) ?? 0) + 1]))
    return ({ tool_use_id: id }) => (before.get(id) ?? 0) < MAX_ROUNDS
  }

  areAny(): boolean {
    const { caller } = this.#deps
    return AFTER_CALLS.some((point) => caller.has(point))
  }

  async after(call: ToolCall, endedCall: EndedCall, signal: AbortSignal): Promise<HookedResult> {
    const hookedResult = await this.#judge(call, endedCall, signal)
    this.#batch.add(call, hookedResult.result)
    return hookedResult
  }

  /** Calls the `PostToolBatch` hooks. Resolves to true if one of them ends the run. */
  afterCalls(signal: AbortSignal): Promise<boolean> {
    return this.#batch.end(signal)
  }

  fileChanged(path: string, how: FileChangeKind): void {
    this.#deps.watching.fileChanged(path, how)
  }

  async #judge(call: ToolCall, { result, denial }: EndedCall, signal: AbortSignal): Promise<HookedResult> {
    const { point, fields } = pointAfter(result, denial)
    try {
      const { events, runs } = await this.#callAbout(point, call, fields, signal)
      if (runs.some(({ answer }) => answer.stop !== undefined)) this.#isEnding = true
      return { result: hookedDraft(point, result, runs), events }
    } catch {
      // The call was interrupted, or the conversation is being closed: its result is stored as it is.
      return { result, events: [] }
    }
  }

  /** A hook in a subagent has ended the run. */
  endRun(): void {
    this.#isEnding = true
  }

  /** True once after a hook that followed a call has ended the run. */
  takeEnd(): boolean {
    const isEnding = this.#isEnding
    if (isEnding) this.#batch.drop()
    this.#isEnding = false
    return isEnding
  }

  /** Calls nothing for a call that its tool would refuse. */
  async #callAbout(
    point: HookPoint,
    { toolUseId, name, input }: CallFacts,
    more: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<{ runs: readonly HookRun[]; events: readonly HookDraft[] }> {
    const { caller, state, toolCalls } = this.#deps
    const { hooksAt } = state.current
    const none = { runs: [], events: [] }
    if (typeof input !== 'object' || input === null || !caller.has(point)) return none
    const toolInput = toolCalls().readInput(name, input)
    if ('fault' in toolInput) return none
    const shownCall = showCall(name, givenParameters(input, toolInput.accepted), state.current.settings.workdir)
    const answeredRuns = await caller.call({ point, ...payloadOf(shownCall, toolUseId, more) }, signal)
    const runs = answeredRuns.map((run) => this.#withOwnInput(point, run, name, shownCall))
    return { runs, events: caller.eventsOf(point, runs, { toolUseId, hooksAt }) }
  }

  /** An input that the tool refuses is an answer that cannot be used. */
  #withOwnInput(point: HookPoint, run: HookRun, name: string, shownCall: ShownCall): HookRun {
    const { updatedInput } = run.answer
    if (!updatedInput) return run
    const own = shownCall.toOwn(updatedInput)
    const toolInput = this.#deps.toolCalls().readInput(name, own)
    if ('fault' in toolInput) return failedRun(point, run, `its updatedInput cannot be used: ${toolInput.fault}`)
    return { ...run, answer: { ...run.answer, updatedInput: own } }
  }
}

const AFTER_CALLS = ['PostToolUse', 'PostToolUseFailure', 'PermissionDenied', 'PostToolBatch'] as const

const payloadOf = (shownCall: ShownCall, toolUseId: string, more: Input = {}): Pick<HookCall, 'names' | 'fields'> => ({
  names: shownCall.names,
  fields: { tool_name: shownCall.name, tool_input: shownCall.input, tool_use_id: toolUseId, ...more },
})

function refusalIn(runs: readonly HookRun[]): string | undefined {
  for (const { answer } of runs) {
    const { decision, reason, stop, updatedInput } = answer
    if (decision === 'deny') return `A hook denies it: ${reason ?? NO_REASON}`
    if (stop !== undefined) return `A hook stops it: ${stop}`
    if (decision === 'ask') return 'A hook asks for a decision about it.'
    if (updatedInput) return 'A hook changes it.'
  }
  return undefined
}

function pointAfter(result: ResultDraft, denial: string | undefined): Pick<HookCall, 'point' | 'fields'> {
  if (denial !== undefined) return { point: 'PermissionDenied', fields: { reason: result.error_message ?? denial } }
  if (!result.is_error) return { point: 'PostToolUse', fields: { tool_response: result.output } }
  const error = result.error_message ?? ''
  return { point: 'PostToolUseFailure', fields: { error, is_interrupt: result.error_type === 'interrupted' } }
}

const SUGGESTIONS = { permission_suggestions: [] }

function decisionOf(toolUseId: string, runs: readonly HookRun[]): HookDecision | undefined {
  const answers = runs.map(({ answer }) => answer)
  const decisive =
    answers.find(({ decision }) => decision === 'deny') ?? answers.find(({ decision }) => decision === 'allow')
  if (!decisive) return undefined
  const { decision, reason, updatedInput } = decisive
  return decision === 'deny'
    ? { toolUseId, behavior: 'deny', message: reason, decidedBy: 'hook' }
    : { toolUseId, behavior: 'allow', updatedInput, decidedBy: 'hook' }
}

const noAnswer = (toolUseId: string): HookDecision => ({
  toolUseId,
  behavior: 'deny',
  message: 'The mode is callback, and no approver answered.',
  decidedBy: 'callback',
})

function hookedDraft(point: HookPoint, result: ResultDraft, runs: readonly HookRun[]): ResultDraft {
  const answers = runs.map(({ answer }) => answer)
  const statements = answers.flatMap(({ block, context }) => [block ?? [], context ?? []].flat())
  const context = [result.context ?? [], statements.map((text) => `${point} hook: ${text}`)].flat().join('\n')
  const output =
    point === 'PostToolUse' ? answers.findLast(({ updatedOutput }) => updatedOutput)?.updatedOutput : undefined
  // A hook that hides something from the output hides it from the patches, too.
  const { changes, ...rest } = result
  return { ...rest, ...(output ? { output: output.value } : changes && { changes }), ...(context && { context }) }
}
