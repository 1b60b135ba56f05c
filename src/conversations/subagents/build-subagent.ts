/** Builds the parts of one subagent: its view of the state, its shells, its tools, its gate and its hooks. */
import type { ChangingTools } from '../../agent/describe-tool.ts'
import type { EventDraft } from '../../contract/events/event.ts'
import type { TransientDraft } from '../../contract/events/transient-event.ts'
import type { EventLog } from '../../events/event-log.ts'
import { EVERY_ID } from '../../llm/answer/tool-call-assembly.ts'
import type { Llm } from '../../llm/llm.ts'
import { PermissionGate } from '../../policy/permissions.ts'
import type { TaskAccess } from '../../tools/task/task-access.ts'
import type { SharedToolDeps, ToolParts } from '../agents/build-tool-calls.ts'
import { buildToolCalls, ofCalls } from '../agents/build-tool-calls.ts'
import type { ConversationShells } from '../../workspace/exec/conversation-shells.ts'
import { Feature } from '../agents/feature.ts'
import type { ConversationHooks } from '../hooks/conversation-hooks.ts'
import type { ConversationProject } from '../project/conversation-project.ts'
import type { AgentParts } from '../agents/agent-context.ts'
import { waitsForClient } from '../../state/client-result.ts'
import { inSubagent } from '../../state/drafts.ts'
import type { AgentView, LiveState } from '../live/live-state.ts'
import type { EndingRequests } from '../live/ending-requests.ts'
import { tokensIn } from '../../contract/values/message.ts'
import type { State, Subagent } from '../../state/state-shape.ts'
import { rulesOfAgent } from '../../state/subagent-rules.ts'
import { awaitedBy, findSubagent, isBlocked, stateOf } from '../../state/subagents.ts'
import { coversMcpTool } from './definitions.ts'
import type { SubagentParts } from './subagent-run.ts'
import { stateInRunOf } from '../../state/run-overrides.ts'
import { inRun } from '../agents/with-model.ts'

/** What all subagents of a conversation share. */
export type SharedParts = Omit<ToolParts, 'log' | 'state' | 'rules' | 'shells' | 'project' | 'hooks' | 'subagents'> &
  Pick<AgentParts, 'createLlm' | 'catalog' | 'withoutTools'> & {
    readonly log: EventLog
    readonly state: LiveState
    readonly shells: ConversationShells
    readonly project: ConversationProject
    readonly hooks: Feature<ConversationHooks>
    readonly homes: readonly string[]
    readonly ending: EndingRequests
  }

export type SubagentDeps = SharedToolDeps & { readonly leaving?: AbortSignal | undefined }

export function buildSubagent(
  deps: SubagentDeps,
  sharedParts: SharedParts,
  subagent: Subagent,
  own: TaskAccess,
): SubagentParts {
  const { state: main, log, workdir, additionalDirectories, homes, withoutTools, catalog } = sharedParts
  const { toolUseId, agentId: id, name } = subagent
  const state = new SubagentView(main, subagent)
  const of = (drafts: readonly EventDraft[]) => inSubagent(drafts, subagent)
  const publish = (draft: TransientDraft) => log.publish({ parent_tool_use_id: toolUseId, agent_name: name, ...draft })
  const emit = async (drafts: readonly EventDraft[]) => void (await log.append(of(drafts)))
  // Another one for each start: the end of the former shells may take a moment.
  const rules = () => rulesOfAgent(main.current, toolUseId)
  const shells = sharedParts.shells.ofAgent(`sub-${subagent.agent.run?.startSeq}.`)
  const hooks = new Feature<ConversationHooks>(
    () => sharedParts.hooks.use().forSubagent({ id, name }, { state, toolCalls: () => toolCalls, emit }),
    () => sharedParts.hooks.current !== undefined,
  )
  const toolCalls = buildToolCalls(deps, {
    ...sharedParts,
    state,
    rules,
    project: sharedParts.project.forAgent({ state, rules, shells, hooks: () => hooks.current?.tools }),
    log: {
      append: (drafts) => log.append(of(drafts)),
      publish,
      subscribe: (reader) => log.subscribe(reader),
      get ended() {
        return log.ended
      },
    },
    shells,
    changing: allowedTools(sharedParts.changing, main, subagent.tools),
    hooks: () => hooks.current?.tools,
    subagents: own,
  })
  const gate = new PermissionGate({ workdir, additionalDirectories, homes, ...ofCalls(() => toolCalls) })
  return {
    state,
    toolCalls,
    gate,
    hooks,
    withoutTools,
    catalog,
    emit,
    publish,
    log,
    createLlm: (config) => withNewIds(sharedParts.createLlm(config)),
    rules,
    spent: () => spentBy(main.current, state.current),
    waitsOutside: () => {
      const { current } = main
      // It was rejected meanwhile: it must not continue.
      const hasEnded = findSubagent(current, toolUseId) === undefined
      if (hasEnded || waitsForClient(state.current)) return true
      const calledSubagents = awaitedBy(current, toolUseId)
      return calledSubagents.length > 0 && calledSubagents.every((each) => isBlocked(current, each))
    },
    leaving: deps.leaving,
    close: () => shells.close(),
  }
}

/** The ids of calls are unique in the conversation, and models number the calls of each history. */
const withNewIds = (llm: Llm): Llm => ({
  model: llm.model,
  stream: (request, signal) => llm.stream({ ...request, takenIds: EVERY_ID }, signal),
})

/** The state as one subagent has it. After its end, the last one. */
class SubagentView implements AgentView {
  readonly #main: LiveState
  #last: { readonly of: State; readonly subagent: Subagent; readonly state: State }

  constructor(main: LiveState, subagent: Subagent) {
    this.#main = main
    this.#last = { of: main.current, subagent, state: stateWithModel(main.current, subagent) }
  }

  get current(): State {
    const { current } = this.#main
    if (current !== this.#last.of) {
      const subagent = findSubagent(current, this.#last.subagent.toolUseId) ?? this.#last.subagent
      this.#last = { of: current, subagent, state: stateWithModel(current, subagent) }
    }
    return this.#last.state
  }
}

/** The limits of a run hold for the run as a whole, those of a subagent that outlives its run for the subagent. */
function spentBy(main: State, own: State) {
  const isOfRun = main.run !== undefined && main.run.id === own.run?.id
  const run = isOfRun ? main.run : own.run
  return { tokens: tokensIn(run?.usage), costUsd: main.costUsd, unpriced: run?.unpriced }
}

/** The tools of MCP servers and of clients that the subagent has. */
function allowedTools(all: ChangingTools, state: LiveState, allowedNames: readonly string[]): ChangingTools {
  const isOfClient = (name: string) => state.current.settings.client_tools?.some((tool) => tool.name === name) ?? false
  const has = (name: string) =>
    allowedNames.includes(name) || (!isOfClient(name) && allowedNames.some((entry) => coversMcpTool(entry, name)))
  let [from, listedTools] = [all.listed, all.listed.filter(({ name }) => has(name))]
  return {
    get listed() {
      if (from !== all.listed) [from, listedTools] = [all.listed, all.listed.filter(({ name }) => has(name))]
      return listedTools
    },
    find: (name) => (has(name) ? all.find(name) : undefined),
    get prepare() {
      return all.prepare
    },
  }
}

export function stateWithModel(main: State, subagent: Subagent): State {
  return stateOf(inRun(stateInRunOf(main, subagent), subagent.model), subagent)
}
