/**
 * The open subagents of a conversation, as a pure fold. Each has the part of the state that belongs to one agent, and its
 * events are folded into that part as those of the main agent are into the state.
 */
import type { Event, EventOf } from '../contract/events/event.ts'
import { currentTools } from '../contract/values/earlier-tools.ts'
import type { OpenPermission } from './open-permission.ts'
import { releasedRequest, undecidedCalls } from './open-permission.ts'
import { isHandedOver, waitsForClient } from './client-result.ts'
import { withoutVerdicts } from './hooked-calls.ts'
import type { Run } from './run-state.ts'
import { spentByRun } from './run-state.ts'
import type { AgentState, State, Subagent } from './state-shape.ts'
import { NO_AGENT } from './state-shape.ts'

type Fold = (state: State, event: Event) => State

/** The call of the subagent that the event belongs to; undefined for the main agent. */
export const parentOf = (event: Event): string | undefined =>
  'parent_tool_use_id' in event ? event.parent_tool_use_id : undefined

export function findSubagent({ subagents }: Pick<State, 'subagents'>, toolUseId: string): Subagent | undefined {
  return subagents.find((each) => each.toolUseId === toolUseId)
}

/** The subagent whose open call this is; undefined for a call of the main agent. */
export const callerOf = ({ subagents }: Pick<State, 'subagents'>, toolUseId: string): Subagent | undefined =>
  subagents.find(({ agent }) => agent.openCalls.some((call) => call.toolUseId === toolUseId))

/**
 * True if a subagent or a client works on the call. The call of a subagent in the background has its result: an open call
 * with its id is another one.
 */
export function isWorkedOn(state: State, toolUseId: string): boolean {
  const subagent = findSubagent(state, toolUseId)
  if (subagent && !subagent.isBackground) return true
  return state.openCalls.some((call) => call.toolUseId === toolUseId && isHandedOver(state, call))
}

/** Returns the state after an event of a subagent. `fold` folds the events of one agent. */
export function foldSubagent(state: State, event: Event, fold: Fold): State {
  const toolUseId = parentOf(event)
  if (event.type === 'SubagentStart') return begin(fold(state, event), event)
  const subagent = state.subagents.find((each) => each.toolUseId === toolUseId)
  const within = fold({ ...state, ...(subagent?.agent ?? NO_AGENT) }, event)
  const after = { ...within, ...agentStateOf(state), run: runOfMain(state, event) }
  if (!subagent) return after
  if (event.type === 'Result') {
    const subagents = after.subagents.filter((each) => each !== subagent)
    return { ...after, subagents, ...(subagent.isBackground && { subagentEndedAt: event.seq }) }
  }
  const next = { ...subagent, agent: agentStateOf(within) }
  return { ...after, subagents: after.subagents.map((each) => (each === subagent ? next : each)) }
}

/** Returns the subagents when the status is `running` again: what was decided is released to run. */
export function releasedSubagents(subagents: readonly Subagent[]): readonly Subagent[] {
  if (!subagents.some(({ agent }) => agent.request)) return subagents
  return subagents.map((each) => ({ ...each, agent: { ...each.agent, request: releasedRequest(each.agent.request) } }))
}

/** Other hooks decide from now on. */
export function unjudgedSubagents(subagents: readonly Subagent[]): readonly Subagent[] {
  return subagents.map((each) => {
    return { ...each, agent: { ...each.agent, openCalls: withoutVerdicts(each.agent.openCalls) } }
  })
}

/** Leaves out the subagent of a call that has its result, unless it works in the background. */
export function withoutAnswered(subagents: readonly Subagent[], toolUseId: string): readonly Subagent[] {
  if (!subagents.some((each) => each.toolUseId === toolUseId && !each.isBackground)) return subagents
  return subagents.filter((each) => each.toolUseId !== toolUseId || each.isBackground)
}

/** The state as the subagent has it, for everything that works for one agent. Its model is that of the conversation. */
export function stateOf(state: State, subagent: Subagent): State {
  const { settings } = state
  const { mode } = subagent
  return {
    ...state,
    ...subagent.agent,
    granted: state.granted,
    settings: {
      ...settings,
      tools: [...subagent.tools],
      ...(mode && settings.permission_mode !== 'callback' && { permission_mode: mode }),
    },
  }
}

type Agents = Pick<State, 'subagents' | 'requests'>

/** The subagents that the agent of this call waits for; without a call those of the main agent. */
export const awaitedBy = ({ subagents }: Pick<State, 'subagents'>, agentCallId?: string): readonly Subagent[] =>
  subagents.filter(({ callerId, isBackground }) => callerId === agentCallId && !isBackground)

/** True if it cannot continue before somebody answers about one of its calls, or of all of its subagents. */
export function isBlocked(state: Agents, subagent: Subagent): boolean {
  if (waitsForAnswer(state, subagent)) return true
  const own = awaitedBy(state, subagent.toolUseId)
  return own.length > 0 && own.every((each) => isBlocked(state, each))
}

/** True if one of its calls waits for somebody, or one of a subagent that it waits for, whether or not others work. */
export const waitsForSomebody = (state: Agents, subagent: Subagent): boolean =>
  waitsForAnswer(state, subagent) || awaitedBy(state, subagent.toolUseId).some((each) => waitsForSomebody(state, each))

/** True if a stop of the server takes nothing from it: of it, or of a subagent that it waits for, nothing runs. */
export const rests = (state: Agents & Pick<State, 'status'>, subagent: Subagent): boolean =>
  waitsForAnswer(state, subagent) ||
  isAnswered(subagent) ||
  (state.status === 'paused' && isDecided(subagent)) ||
  awaitedBy(state, subagent.toolUseId).some((each) => rests(state, each))

const waitsForAnswer = ({ requests }: Agents, { agent: { request, openCalls } }: Subagent): boolean =>
  undecidedCalls(request).length > 0 || waitsForClient({ openCalls, requests })

/** True if a client has answered one of its calls, and nothing has run since: the result of the call comes first. */
const isAnswered = ({ agent: { openCalls } }: Subagent): boolean =>
  openCalls.some(({ clientResult }) => clientResult !== undefined)

/** True if its calls were decided while paused, and none has run since. */
const isDecided = ({ agent: { request } }: Subagent): boolean => request !== undefined && !request.isReleased

/** The requests of all agents that wait for a decision. */
export const openPermissions = ({ request, subagents }: Pick<State, 'request' | 'subagents'>): OpenPermission[] =>
  [request, ...subagents.map(({ agent }) => agent.request)]
    .filter((each) => each !== undefined)
    .filter((each) => undecidedCalls(each).length > 0)

/** True if the main agent waits for subagents, and none of them can continue before somebody answers. */
export function waitsForSubagents(state: Agents): boolean {
  const own = awaitedBy(state)
  return own.length > 0 && own.every((each) => isBlocked(state, each))
}

/** True if subagents work in the background, or will when the conversation is not paused any more. */
export const areInBackground = ({ subagents }: Pick<State, 'subagents'>) =>
  subagents.some(({ isBackground }) => isBackground)

/** True if one of them works, or is about to: it neither waits for a decision nor is paused. */
export const canWorkInBackground = (state: Pick<State, 'status'> & Agents): boolean =>
  state.status !== 'paused' && state.subagents.some((each) => each.isBackground && !isBlocked(state, each))

/** True if the main agent does not wait for it. */
export const isDetached = (state: Pick<State, 'subagents'>, subagent: Subagent): boolean =>
  detachedOf(state, subagent) !== undefined

/** The one that works in the background: it, or the subagent that called it. */
export function detachedOf(state: Pick<State, 'subagents'>, subagent: Subagent): Subagent | undefined {
  if (subagent.isBackground) return subagent
  const caller = subagent.callerId === undefined ? undefined : findSubagent(state, subagent.callerId)
  return caller && detachedOf(state, caller)
}

/** Returns how deep the subagents of this agent are nested: 1 for those of the main agent. */
export function depthBelow(state: Pick<State, 'subagents'>, agentCallId: string | undefined): number {
  const agent = agentCallId === undefined ? undefined : findSubagent(state, agentCallId)
  return agent ? 1 + depthBelow(state, agent.callerId) : 1
}

function agentStateOf(state: State): AgentState {
  const { run, openCalls, request, holdsCalls, lastOutputs, readThrough, repeats, granted, answered } = state
  const { forgotten, contextTokens } = state
  const calls = { run, openCalls, request, holdsCalls, lastOutputs }
  return { ...calls, readThrough, repeats, granted, answered, forgotten, contextTokens }
}

function begin(state: State, event: EventOf<'SubagentStart'>): State {
  const { parent_tool_use_id: toolUseId, seq } = event
  const caller = callerOf(state, toolUseId)
  const subagent: Subagent = {
    toolUseId,
    callerId: caller?.toolUseId,
    agentId: event.agent_id,
    name: event.agent_name,
    tools: currentTools(event.tools),
    deny: event.disallowed_tools ?? [],
    model: event.model,
    mode: event.permission_mode,
    isBackground: event.background,
    firstSeq: event.first_seq ?? seq,
    agent: { ...NO_AGENT, run: runOf(event) },
  }
  return { ...state, subagents: [...state.subagents, subagent] }
}

function runOf({ run_id: id = '', timestamp, seq, max_steps: maxSteps }: EventOf<'SubagentStart'>): Run {
  return {
    id,
    startedAt: timestamp,
    startSeq: seq,
    steps: 0,
    maxSteps,
    activeSince: timestamp,
    activeMs: 0,
    usage: {},
    costUsd: undefined,
    finalText: '',
  }
}

/** What a subagent spends counts for the run, too. */
function runOfMain({ run }: State, event: Event): Run | undefined {
  if (event.type !== 'AssistantMessage' && event.type !== 'Condensation') return run
  return run && run.id === event.run_id ? { ...run, ...spentByRun(run, event) } : run
}
