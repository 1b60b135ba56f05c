/** Ends one subagent in the background for a client. What its tools still do is waited for outside the turns of the conversation. */
import { uuid7 } from '../../lib/uuid7.ts'
import { stoppedByClient } from '../../state/drafts.ts'
import { detachedOf, findSubagent } from '../../state/subagents.ts'
import type { LiveState } from '../live/live-state.ts'
import type { BackgroundSubagents } from './background.ts'
import type { SubagentRun } from './subagent-run.ts'
import type { IntentInbox } from '../live/inbox.ts'

type StopDeps = {
  readonly state: LiveState
  readonly actor: () => IntentInbox
  readonly background: BackgroundSubagents
  /** Returns the runs of all subagents that have worked in this process and have not ended. */
  readonly runs: () => readonly SubagentRun[]
}

/** Resolves when its end is stored, or at once if none with this id is in the background. Rejects if it could not be stored; then it works on. */
export async function stopOne(deps: StopDeps, agentId: string): Promise<void> {
  const { state, background } = deps
  const subagent = state.current.subagents.find((each) => each.isBackground && each.agentId === agentId)
  if (subagent) await background.endOne(subagent.toolUseId, () => endNow(deps, subagent.toolUseId))
}

async function endNow({ state, actor, runs }: StopDeps, toolUseId: string): Promise<void> {
  const isOfIt = (run: SubagentRun) => {
    const own = findSubagent(state.current, run.toolUseId)
    return own !== undefined && detachedOf(state.current, own)?.toolUseId === toolUseId
  }
  const working = () => runs().filter((run) => isOfIt(run) && run.begunCalls().length > 0)
  // A tool that ignores its signal writes its result later than the grace time of `interrupt`.
  for (let workingRuns = working(); workingRuns.length > 0; workingRuns = working())
    await Promise.all(workingRuns.map(endCalls))
  await actor().enqueue(async () => {
    const events = stoppedByClient(state.current, toolUseId)
    if (events.length > 0) await actor().apply({ kind: 'end_background', toolUseId, events, newRunId: uuid7() })
  })
}

/** Rejects if a result cannot be stored. */
async function endCalls({ parts: { toolCalls } }: SubagentRun): Promise<void> {
  await toolCalls.interrupt()
  await toolCalls.storeResults()
}
