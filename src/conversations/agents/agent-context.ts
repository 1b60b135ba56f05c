/** What the agent loop knows of the agent that it works for: the main agent of a run, or a subagent. */
import type { CompactorDeps } from '../../agent/compaction/compactor.ts'
import { Compactor } from '../../agent/compaction/compactor.ts'
import type { AgentContext, Output } from '../../agent/loop-context.ts'
import type { History } from '../../agent/history/history.ts'
import { isNearlyStuck, stuckIn } from '../../agent/repeats/habits.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { LlmConfig } from '../../contract/values/llm-config.ts'
import type { ModelCatalog } from '../../llm/catalog/model-catalog.ts'
import type { Llm } from '../../llm/llm.ts'
import type { GateRules, GatedCall } from '../../policy/rules/gate-rules.ts'
import type { PermissionGate } from '../../policy/permissions.ts'
import { TurnGate } from '../../policy/turn-gate.ts'
import type { Feature } from './feature.ts'
import { withoutSampling } from './with-model.ts'
import type { ConversationHooks } from '../hooks/conversation-hooks.ts'
import type { AgentView, LiveState } from '../live/live-state.ts'
import { openAnswer } from '../../state/answered.ts'
import { gatedCalls } from '../../state/state.ts'
import { isWorkedOn } from '../../state/subagents.ts'

/** `state` is that of the agent, and `emit` and `publish` mark its events as such. */
export type AgentParts = Pick<Output, 'emit'> & {
  readonly state: Pick<LiveState, 'current'>
  readonly toolCalls: ToolCalls
  readonly gate: PermissionGate
  readonly hooks: Feature<ConversationHooks>
  readonly createLlm: (config: LlmConfig) => Llm
  readonly catalog: ModelCatalog
  /** Models of this conversation that turned out not to support tools. */
  readonly withoutTools: Set<string>
  /** A call must be allowed by each of them. */
  readonly rules: () => readonly GateRules[]
  readonly spent: AgentContext['spent']
  readonly waitsOutside: () => boolean
  readonly leaving: AbortSignal | undefined
}

export type OfRun = Pick<
  AgentContext,
  'runId' | 'history' | 'onRequest' | 'output' | 'sent' | 'snapshots' | 'instructions'
>

/**
 * The model of a history: it keeps the messages as they were sent, for as long as the history is kept. Another
 * configuration means another model, so that a change applies from the next step.
 */
const models = new WeakMap<History, { readonly for: LlmConfig; readonly llm: Llm }>()

export function createAgentContext(parts: AgentParts, ofRun: OfRun): AgentContext {
  const { state, toolCalls, gate, hooks, createLlm, catalog, withoutTools, emit, spent, waitsOutside, leaving } = parts
  const { runId, history, sent } = ofRun
  const rules = () =>
    hooks.current?.areApprovers() ? parts.rules().map((each) => ({ ...each, hasApprover: true })) : parts.rules()
  let turn: TurnGate | undefined
  const toDecide = () => {
    const { current } = state
    const isNew = ({ toolUseId: id }: GatedCall) => !toolCalls.hasBegun(id) && !isWorkedOn(current, id)
    return { calls: gatedCalls(current).filter(isNew), rules: rules() }
  }
  return {
    ...ofRun,
    toolCalls,
    compactor: new Compactor({
      ...compactionOf(state, toolCalls, hooks),
      runId,
      history,
      runInstructions: ofRun.instructions,
      tools: () => (withoutTools.has(state.current.settings.llm_config.model ?? '') ? [] : toolCalls.descriptions),
      createLlm,
      catalog,
      emit,
      sent,
    }),
    withoutTools,
    llm: () => {
      const { run, settings } = state.current
      const config = settings.llm_config
      if (run?.toolChoice && run.steps === 0) return createLlm({ ...config, tool_choice: run.toolChoice })
      const knownModel = models.get(history)
      if (knownModel?.for === config) return knownModel.llm
      const llm = createLlm(config)
      models.set(history, { for: config, llm })
      return llm
    },
    hooks: () => hooks.current?.forLoop(),
    openCalls: () => state.current.openCalls,
    decideCalls: (next, signal) => {
      turn ??= new TurnGate(gate)
      return turn.decide(toDecide(), new Set(next.map(({ toolUseId }) => toolUseId)), signal)
    },
    gate: (next) =>
      turn?.gated(
        toDecide(),
        next.map(({ toolUseId }) => toolUseId),
      ),
    leftAnswer: () => openAnswer(state.current),
    waitsOutside,
    leaving,
    steps: () => state.current.run?.steps ?? 0,
    stuckIn: () => stuckIn(state.current.repeats),
    isNearlyStuck: () => isNearlyStuck(state.current.repeats),
    limits: () => {
      const { run, settings } = state.current
      return {
        maxSteps: run?.maxSteps,
        maxIterations: settings.max_iteration_per_run,
        maxTokens: settings.max_tokens_per_run,
        maxBudgetUsd: settings.max_budget_usd,
        allowsUnpriced: settings.allow_unpriced ?? false,
      }
    },
    spent,
  }
}

const TASK_LIST = 'TaskTracker'

/** Returns what a compaction reads of the state of its conversation. These are current values: the configuration may change between two steps. */
export function compactionOf(
  state: AgentView,
  toolCalls: Pick<ToolCalls, 'render'>,
  hooks: Feature<ConversationHooks>,
): Pick<CompactorDeps, 'settings' | 'summaryConfig' | 'activeRun' | 'tasks' | 'runHooks' | 'tellHooks'> {
  return {
    runHooks: (call, signal) => hooks.current?.beforeCompaction(call, signal),
    tellHooks: (compaction, signal) => hooks.current?.afterCompaction(compaction, signal),
    activeRun: () => state.current.run?.id,
    settings: () => state.current.settings,
    summaryConfig: () => withoutSampling(state.current.settings.llm_config),
    tasks: () => {
      const list = state.current.lastOutputs[TASK_LIST]
      return list === undefined ? undefined : toolCalls.render(TASK_LIST, list)
    },
  }
}
