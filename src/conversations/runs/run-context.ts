/** What the agent loop knows of a run of the main agent, and what is stored when the loop ends. */
import type { LoopEnd, LoopWait } from '../../agent/loop-end.ts'
import type { AgentContext } from '../../agent/loop-context.ts'
import type { OutputContext } from '../../agent/output/final-output.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventLog } from '../../events/event-log.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { Intent } from '../../state/intents.ts'
import { waitsForClient } from '../../state/client-result.ts'
import { atRest } from '../../state/cut-off.ts'
import { overridesOf } from '../../state/run-overrides.ts'
import { tokensIn } from '../../contract/values/message.ts'
import type { State } from '../../state/state.ts'
import { rulesOf } from '../../state/state.ts'
import { waitsForSubagents } from '../../state/subagents.ts'
import { statusOfWait } from '../../state/waits.ts'
import type { AgentParts } from '../agents/agent-context.ts'
import { MissingWorkdir } from '../../workspace/workdirs/missing-workdir.ts'
import { createAgentContext } from '../agents/agent-context.ts'
import type { LiveHistory } from '../agents/live-history.ts'
import { inRun } from '../agents/with-model.ts'
import type { LiveState } from '../live/live-state.ts'

export type RunContextParts = Pick<
  AgentParts,
  'gate' | 'createLlm' | 'catalog' | 'withoutTools' | 'hooks' | 'leaving'
> & {
  readonly log: EventLog
  readonly toolCalls: ToolCalls
  readonly state: LiveState
  readonly snapshots: () => AgentContext['snapshots']
  /** Rejects with a `MissingWorkdir`. Undefined where no other instance may have made the workdir. */
  readonly requireWorkdir: (() => Promise<void>) | undefined
}

type OfAgent = { readonly history: LiveHistory } & Pick<AgentContext, 'sent'>

type OfRun = { readonly id: string } & Pick<AgentContext, 'onRequest'>

/** Reads the history of the agent, if it is not known. Throws the signal's reason when it is aborted. */
export async function createRunContext(
  parts: RunContextParts & OfAgent,
  { id: runId, onRequest }: OfRun,
  signal: AbortSignal,
): Promise<AgentContext> {
  const { log, toolCalls, state, history: live, sent } = parts
  await parts.requireWorkdir?.()
  if (toolCalls.prepare) await toolCalls.prepare(signal)
  const render = (name: string, output: unknown) => toolCalls.render(name, output)
  const { forgotten, rewound } = state.current
  const history = await live.load(log, render, signal, { forgotten, rewound })
  const overrides = overridesOf(state.current)
  const ofAgent: AgentParts = {
    ...parts,
    state: overrides ? inRunOf(state) : state,
    emit: async (drafts) => void (await log.append(drafts)),
    rules: () => [rulesOf(state.current)],
    spent: () => {
      const { run, costUsd } = state.current
      return { tokens: tokensIn(run?.usage), costUsd, unpriced: run?.unpriced }
    },
    waitsOutside: () => waitsForClient(state.current) || waitsForSubagents(state.current),
  }
  const snapshots = state.current.settings.file_checkpointing ? parts.snapshots() : undefined
  const output = outputOf(state, runId)
  const instructions = overrides?.instructions
  return createAgentContext(ofAgent, { runId, history, sent, onRequest, snapshots, output, instructions })
}

/** The state with what the run has instead of the settings of the conversation. */
const inRunOf = (state: LiveState): AgentParts['state'] => ({
  get current() {
    return inRun(state.current)
  },
})

function outputOf(state: LiveState, runId: string): OutputContext | undefined {
  const schema = state.current.run?.outputSchema ?? state.current.settings.output_schema
  return schema && { runId, schema, requests: () => state.current.run?.outputRequests ?? 0 }
}

/** `requestedAt` is the log's head at the last model request, or 0 if there was none. */
export type RunEnd = (LoopEnd | LoopWait) & { readonly requestedAt: number }

export function intentToEnd(runId: string, end: RunEnd, begunCalls: readonly string[]): Intent {
  if ('permissionCalls' in end)
    return { kind: 'request_permission', runId, requestId: uuid7(), toolUses: end.permissionCalls, hooked: end.hooked }
  if ('waitsOutside' in end) return { kind: 'await_outside', runId }
  if ('questionCalls' in end)
    return {
      kind: 'request_answers',
      runId,
      calls: end.questionCalls.map((call) => ({ ...call, questionId: uuid7() })),
    }
  return { kind: 'end_run', runId, ...end, begun: begunCalls, newRunId: uuid7(), now: Date.now() }
}

/** Returns the end of a run that failed. */
export function failureOf(error: unknown): LoopEnd {
  const type = error instanceof MissingWorkdir ? 'workdir_missing' : 'internal'
  const isShown = error instanceof Problem || error instanceof MissingWorkdir
  const message = isShown ? error.message : 'The server failed inside the run; its log has the details.'
  return { stopReason: 'error', failure: { type, message, retryable: true } }
}

/**
 * What only waits for somebody waits on after the next start; what works next to it is cut off, as by a kill. Undefined if
 * the run works.
 */
export function intentToRest(state: State): Intent | undefined {
  if (state.run && statusOfWait(state)) return { kind: 'await_outside', runId: state.run.id }
  if (atRest(state).subagents.length > 0)
    return { kind: 'recover', why: 'server_restart', newRunId: uuid7(), now: Date.now() }
  return undefined
}
