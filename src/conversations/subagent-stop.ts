/** How a client ends one subagent that works in the background: its end is an event of the log, and all others work on. */
import type { StoppedSubagent } from '../contract/run.ts'
import type { EventOf } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import type { EventLog } from '../events/event-log.ts'
import { readPages } from '../events/read-pages.ts'
import type { ConversationActor } from './actor.ts'

const TYPES: ReadonlySet<string> = new Set(['SubagentStart', 'Result'])
const PAGE = { limit: 1000, maxBytes: 1024 * 1024 }

/** Idempotent: resolves to its last end. Throws a `Problem`: `subagent_not_found`. */
export async function stopSubagent(
  { log, actor }: { readonly log: EventLog; readonly actor: ConversationActor },
  agentId: string,
): Promise<StoppedSubagent> {
  await actor.subagents.current?.stopOne(agentId)
  let isInBackground = false
  let end: EventOf<'Result'> | undefined
  for await (const { events } of readPages(log, { types: TYPES, ...PAGE }))
    for (const { event } of events) {
      // One that has ended may be continued in the foreground.
      if (event.type === 'SubagentStart' && event.agent_id === agentId) isInBackground = event.background
      if (event.type === 'Result' && event.background_agent_id === agentId) end = event
    }
  if (isInBackground && end) return { agent_id: agentId, seq: end.seq, stop_reason: end.stop_reason }
  throw new Problem(
    'subagent_not_found',
    `No subagent in the background has the id ${agentId}. The events SubagentStart with background: true have the ids; a pause with interrupt: true ends those in the foreground.`,
  )
}
