/** Finds the beginning of a subagent by its id, for calls that continue it. The log is read once, whatever models ask for. */
import type { EventOf } from '../../contract/events/event.ts'
import type { EventLog } from '../../events/event-log.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { LiveState } from '../live/live-state.ts'
import { readPages } from '../../events/read-pages.ts'

const TYPES = new Set(['SubagentStart'])
const PAGE = 100

export class SubagentStarts {
  readonly #log: Pick<EventLog, 'read' | 'subscribe'>
  readonly #state: Pick<LiveState, 'current'>
  /** The seqs of the last starts, by the ids of subagents. Read with the first question. */
  #seqs: Promise<ReadonlyMap<string, number>> | undefined

  constructor(log: Pick<EventLog, 'read' | 'subscribe'>, state: Pick<LiveState, 'current'>) {
    this.#log = log
    this.#state = state
  }

  /** Returns the last time that it began. Rejects if the log cannot be read. */
  async find(agentId: string): Promise<EventOf<'SubagentStart'> | undefined> {
    this.#seqs ??= this.#read()
    const seq = (await this.#seqs).get(agentId)
    if (seq === undefined) return undefined
    const { events } = await this.#log.read({ afterSeq: seq - 1, limit: 1 })
    const event = events[0]?.event
    return event?.type === 'SubagentStart' ? event : undefined
  }

  async #read(): Promise<ReadonlyMap<string, number>> {
    const seqs = new Map<string, number>()
    const add = ({ agent_id, seq }: EventOf<'SubagentStart'>) =>
      seqs.set(agent_id, Math.max(seq, seqs.get(agent_id) ?? 0))
    // Subscribe before reading: a start between the two would be lost otherwise.
    const unsubscribe = this.#log.subscribe({
      onEvents: (events) => {
        for (const { event } of events) if (event.type === 'SubagentStart') add(event)
        if (!events.some(({ type }) => type === 'Rewound')) return
        unsubscribe()
        this.#seqs = undefined
      },
    })
    try {
      const { rewound } = this.#state.current
      for await (const { events } of readPages(this.#log, { types: TYPES, limit: PAGE }))
        for (const { event } of events) if (event.type === 'SubagentStart' && holds(rewound, event)) add(event)
      return seqs
    } catch (error) {
      unsubscribe()
      this.#seqs = undefined
      throw error
    }
  }
}
