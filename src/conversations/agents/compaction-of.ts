/** What a compaction reads of the state of its conversation. */
import type { CompactorDeps } from '../../agent/compaction/compactor.ts'
import type { ToolCalls } from '../../agent/tool-calls.ts'
import type { Feature } from './feature.ts'
import type { ConversationHooks } from '../hooks/conversation-hooks.ts'
import type { AgentView } from '../live-state.ts'

const TASK_LIST = 'TaskTracker'

/** Returns current values: the configuration may change between two steps. */
export function compactionOf(
  state: AgentView,
  toolCalls: Pick<ToolCalls, 'render'>,
  hooks: Feature<ConversationHooks>,
): Pick<CompactorDeps, 'settings' | 'activeRun' | 'tasks' | 'askHooks' | 'tellHooks'> {
  return {
    askHooks: (call, signal) => hooks.current?.beforeCompaction(call, signal),
    tellHooks: (done, signal) => hooks.current?.afterCompaction(done, signal),
    activeRun: () => state.current.run?.id,
    settings: () => state.current.settings,
    tasks: () => {
      const list = state.current.lastOutputs[TASK_LIST]
      return list === undefined ? undefined : toolCalls.render(TASK_LIST, list)
    },
  }
}
