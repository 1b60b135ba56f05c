/** Connects the subagents of a conversation to its actor. */
import type { SubagentDeps } from './build-subagent.ts'
import type { SharedParts } from './build-subagent.ts'
import { buildSubagent } from './build-subagent.ts'
import { SubagentStarts } from './subagent-starts.ts'
import type { SubagentsDeps } from './subagents.ts'
import { Subagents } from './subagents.ts'

export function buildSubagents(
  deps: SubagentDeps & Pick<SubagentsDeps, 'slots'>,
  sharedParts: SharedParts,
  { actor, main, onWork }: Pick<SubagentsDeps, 'actor' | 'main' | 'onWork'>,
): Subagents {
  const { id, log, state, ending, logger } = sharedParts
  return new Subagents({
    starts: new SubagentStarts(log, state),
    state,
    ending,
    actor,
    main,
    onWork,
    slots: deps.slots,
    leaving: deps.leaving,
    build: (subagent, own) => buildSubagent(deps, sharedParts, subagent, own),
    onError: (error) => logger.error({ err: error, conversation_id: id }, 'a subagent could not be ended'),
  })
}
