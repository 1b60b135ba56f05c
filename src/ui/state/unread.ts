/** Messages that were sent while the agent works, and that it has not read: they wait for its next step. Pure. */
import type { EventOf } from '../../contract/events/event.ts'
import type { ChatRow } from './items.ts'

type Message = EventOf<'UserMessage'>

/** Returns the seqs of those of the rows of a run that is active. */
export function waitingSeqs(rows: readonly ChatRow[]): ReadonlySet<number> {
  const messages: Message[] = []
  const withdrawnSeqs = new Set<number>()
  let readThrough: number | undefined
  for (const row of rows.toReversed()) {
    if (row.kind !== 'event') continue
    const { event } = row
    // The run before.
    if (event.type === 'Result') break
    if (event.type === 'AssistantMessage' && event.agent_name === undefined)
      readThrough ??= event.read_through ?? event.seq
    if (event.type === 'MessageWithdrawn') withdrawnSeqs.add(event.message_seq)
    if (event.type !== 'UserMessage') continue
    if (readThrough !== undefined && event.seq <= readThrough) break
    messages.push(event)
  }
  // The first one has started the run, and is being answered.
  if (readThrough === undefined) messages.pop()
  return new Set(messages.map(({ seq }) => seq).filter((seq) => !withdrawnSeqs.has(seq)))
}
