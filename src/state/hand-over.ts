/** Decides what is stored when this process leaves a conversation to another one, which continues it. Pure. */
import type { EventDraft } from '../contract/events/event.ts'
import { answerCall, inSubagent } from './drafts.ts'
import { closeWithoutCall } from './request-drafts.ts'
import type { State } from './state-shape.ts'
import { stateOf } from './subagents.ts'
import { endOfLostJobs } from './task-intents.ts'
import { waitOutside } from './waits.ts'

/** No agent works any more. `begun`: calls that ignored that they must end. `running`: what ends with the instance. */
export type HandOverIntent = { kind: 'hand_over'; begun: readonly string[]; running: RunningShells }

export type RunningShells = { readonly sessions: readonly string[]; readonly commandLines: readonly string[] }

/** A run that works stays `running`, and its calls that have not begun stay open: the next owner continues with them. */
export function decideHandOver(state: State, { begun, running }: HandOverIntent): EventDraft[] {
  const ofSubagents = state.subagents.flatMap((each) => inSubagent(endBegun(stateOf(state, each), begun), each))
  const waits = state.status === 'running' ? waitOutside(state) : []
  return [
    ...endOfLostJobs(state),
    ...closeWithoutCall(state, 'interrupted'),
    ...ofSubagents,
    ...endBegun(state, begun),
    ...endOfProcesses(running),
    ...waits,
  ]
}

const MAX_LINES = 20
const MAX_LINE_CHARS = 200

function endOfProcesses({ sessions, commandLines }: RunningShells): EventDraft[] {
  if (sessions.length + commandLines.length === 0) return []
  const command_lines = commandLines.slice(0, MAX_LINES).map((line) => line.slice(0, MAX_LINE_CHARS))
  const endedWork = { sessions: [...sessions], processes: commandLines.length, command_lines }
  return [{ type: 'ProcessesEnded', source: 'environment', reason: 'interrupted', ...endedWork }]
}

function endBegun(state: State, begunCalls: readonly string[]): EventDraft[] {
  const calls = state.openCalls.filter(({ toolUseId }) => begunCalls.includes(toolUseId))
  return calls.flatMap((call) => answerCall(state, call, { type: 'interrupted', why: 'interrupted', message: CUT_OFF }))
}

const CUT_OFF = 'interrupted: the server stopped before this call had ended; it is not known what it did'
