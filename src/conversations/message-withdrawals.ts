/** How a client takes a message back that the agent has not read: its event stays in the log, and no request has it. */
import type { Event, EventOf } from '../contract/events/event.ts'
import { Problem } from '../contract/problem.ts'
import type { WithdrawnMessage } from '../contract/run.ts'
import type { EventLog } from '../events/event-log.ts'
import { readPages } from '../events/read-pages.ts'
import { leavesRunWithoutWork } from '../state/withdraw-intent.ts'
import type { ConversationActor } from './actor.ts'
import type { LiveState } from './live/live-state.ts'
import type { Compactions } from './runs/compactions.ts'

type WithdrawalParts = {
  readonly actor: ConversationActor
  readonly state: LiveState
  readonly compactions: Pick<Compactions, 'isIdle'>
}

type Message = EventOf<'UserMessage'>

/** Events read at a time. */
const PAGE = { limit: 1000, maxBytes: 1024 * 1024 }
const TYPES: ReadonlySet<string> = new Set(['UserMessage', 'MessageWithdrawn'])

export class MessageWithdrawals {
  readonly #log: EventLog
  readonly #parts: WithdrawalParts

  constructor(log: EventLog, parts: WithdrawalParts) {
    this.#log = log
    this.#parts = parts
  }

  /** Idempotent. Throws a `Problem`: `message_not_found`, and `already_read`. */
  async withdraw(eventId: string): Promise<WithdrawnMessage> {
    const message = await this.#find(eventId)
    const head = this.#log.head
    // This is out of turn, because the message may be at the beginning of a long log.
    const earlier = (await this.#readAfter(message.seq)).withdrawals.get(message.seq)
    const seq = earlier ?? (await this.#parts.actor.enqueue(() => this.#store(message, head)))
    const { content, sender } = message
    return { event_id: eventId, seq, message: { role: 'user', content, ...(sender !== undefined && { sender }) } }
  }

  async #find(eventId: string): Promise<Message> {
    const event = (await this.#log.find(eventId))?.event
    if (event?.type !== 'UserMessage')
      throw new Problem('message_not_found', `There is no message ${eventId} in this conversation.`)
    if (event.task_id === undefined) return event
    throw new Problem('message_not_found', `This message belongs to task ${event.task_id}; cancel the task instead.`)
  }

  /** Returns the seq of the withdrawal. Call it in turn only. */
  async #store(message: Message, head: number): Promise<number> {
    const { actor, state, compactions } = this.#parts
    const { messages, withdrawals } = await this.#readAfter(Math.min(head, state.current.readThrough))
    const earlier = withdrawals.get(message.seq)
    if (earlier !== undefined) return earlier
    if (!compactions.isIdle)
      throw new Problem('conversation_running', 'The conversation is being compacted, with this message; wait.')
    const others = messages.filter(({ seq, run }) => run && seq !== message.seq && !withdrawals.has(seq))
    const newest = Math.max(0, ...others.map(({ seq }) => seq))
    const { runs } = actor
    const intent = {
      kind: 'withdraw',
      message,
      runRequestedAt: newest > state.current.readThrough ? newest : 0,
      sentThrough: runs.sentThrough,
      now: Date.now(),
    } as const
    // No request is built between this decision and the abort of the run.
    const endsRun = leavesRunWithoutWork(state.current, intent)
    if (endsRun) await runs.stopRun()
    const storing = endsRun ? actor.applyEnd(intent) : actor.apply(intent)
    runs.sent.holdFor(storing, () => this.#log.failed)
    const events = await storing
    return events.find(({ type }) => type === 'MessageWithdrawn')?.seq ?? state.current.lastSeq
  }

  async #readAfter(afterSeq: number) {
    const messages: Message[] = []
    const withdrawals = new Map<number, number>()
    const add = (event: Event) => {
      if (event.type === 'UserMessage') messages.push(event)
      if (event.type === 'MessageWithdrawn') withdrawals.set(event.message_seq, event.seq)
    }
    const pages = readPages(this.#log, { types: TYPES, afterSeq, ...PAGE })
    for await (const { events } of pages) for (const { event } of events) add(event)
    return { messages, withdrawals }
  }
}
