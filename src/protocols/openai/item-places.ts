/** Finds where the items of a conversation are in its log, without reading what is before them. */
import type { Event } from '../../contract/events/event.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { findInLog, readPages } from '../../events/read-pages.ts'
import { uuid7Time } from '../../lib/uuid7.ts'
import { uuidIn } from './response-id.ts'

const PAGE = { limit: 32, maxBytes: 1024 * 1024 }
const CALLS: ReadonlySet<string> = new Set(['ToolUse'])
const CALLS_AND_ENDS: ReadonlySet<string> = new Set(['ToolUse', 'ToolResult', 'Result', 'Rewound'])

/** Returns a seq at or before the event of the item, near it; undefined if no item of the conversation has this id. */
export async function placeOfItem({ log }: Conversation, itemId: string): Promise<number | undefined> {
  const uuid = uuidIn(itemId)
  if (uuid !== undefined) {
    const ms = uuid7Time(uuid)
    if (ms === undefined) return undefined
    const { events } = await log.read({ since: new Date(ms).toISOString(), limit: 1 })
    return events[0]?.seq
  }
  const [, callId] = /^(?:mcp|fc|fco|mcpa)_(.+)$/s.exec(itemId) ?? []
  if (callId === undefined) return undefined
  return await findInLog(log, { types: CALLS, order: 'desc', ...PAGE }, ({ event, seq }) =>
    event.type === 'ToolUse' && event.tool_use_id === callId ? seq : undefined,
  )
}

/**
 * Finds the end of the last whole turn before an event, and returns its seq. A turn is whole when each of its calls has a result.
 * Returns 0 if there is no such turn. The events after it can be shown without those before it.
 */
export async function beginningBefore({ log, state }: Conversation, beforeSeq: number): Promise<number> {
  /** Calls that began earlier. */
  const missing = new Set<string>()
  for await (const { events } of readPages(log, { beforeSeq, types: CALLS_AND_ENDS, order: 'desc', ...PAGE }))
    for (const { event, seq } of events) {
      if (!holds(state.rewound, event) || !isOfMain(event)) continue
      if (event.type === 'ToolResult') missing.add(event.tool_use_id)
      else if (event.type === 'ToolUse') missing.delete(event.tool_use_id)
      else if (missing.size === 0) return seq
    }
  return 0
}

const isOfMain = (event: Event): boolean =>
  !('parent_tool_use_id' in event && event.parent_tool_use_id !== undefined) &&
  !('background_agent_id' in event && event.background_agent_id !== undefined)
