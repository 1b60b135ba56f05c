/** The names of the tools that clients of a conversation execute. */
import { z } from 'zod'
import type { Event } from '../../contract/events/event.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { findInLog, readPages } from '../../events/read-pages.ts'

type Names = ReadonlySet<string>

/** Returns the names at the event with this seq. */
export type ClientToolsAt = (seq: number) => Names

export const clientToolsIn = ({ state }: Conversation): Names => namesIn(state.settings.client_tools)

const PAGE = { limit: 64, maxBytes: 1024 * 1024 }
const CHANGES: ReadonlySet<string> = new Set(['ConfigUpdate', 'SystemInit'])

/** Reads them for the events from `start` on: a client may have changed its tools since. */
export async function clientToolsFrom(conversation: Conversation, start: number): Promise<ClientToolsAt> {
  const { log } = conversation
  const current = clientToolsIn(conversation)
  const changes: { readonly seq: number; readonly names: Names }[] = []
  for await (const { events } of readPages(log, { afterSeq: start - 1, types: CHANGES, ...PAGE }))
    for (const { event, seq } of events) {
      const names = changeIn(event)
      if (names) changes.push({ seq, names })
    }
  if (changes.length === 0) return () => current
  const before = await namesBefore(conversation, start)
  return (seq) => changes.findLast((change) => change.seq <= seq)?.names ?? before
}

async function namesBefore({ log }: Conversation, beforeSeq: number): Promise<Names> {
  const range = { beforeSeq, types: CHANGES, order: 'desc', ...PAGE } as const
  return (await findInLog(log, range, ({ event }) => changeIn(event))) ?? new Set()
}

/** Undefined if the event does not change them. */
function changeIn(event: Event): Names | undefined {
  if (event.type === 'SystemInit') return namesIn(event.options_summary['client_tools'])
  if (event.type !== 'ConfigUpdate' || !('client_tools' in event.changes)) return undefined
  return namesIn(event.changes['client_tools'])
}

const ToolNames = z.array(z.looseObject({ name: z.string() }))

const namesIn = (tools: unknown): Names => new Set((ToolNames.safeParse(tools).data ?? []).map(({ name }) => name))
