/** "Continue." is in no event: a history that lived through the requests, and one that reads the log, must agree on it. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { findFaults } from '../../../src/agent/find-faults.ts'
import type { ListedMessage } from '../../../src/agent/history/message-list.ts'
import { History } from '../../../src/agent/history/history.ts'
import type { Event, EventDraft } from '../../../src/contract/events/event.ts'
import type { ModelMessage } from '../../../src/llm/llm.ts'
import { answered, stored, systemInit, toolResult, toolUse, userMessage } from '../../conversations/events.ts'
import { effort } from '../../support/patience.ts'

const render = (_: string, output: unknown) => String(output)

/** What is stored while the model answers, and before the next request. */
const meanwhile = fc.array(fc.constantFrom('message' as const, 'compaction' as const), { maxLength: 3 })
/** `nothing`: the request failed, or its run was paused. */
const answer = fc.constantFrom('text' as const, 'call' as const, 'empty' as const, 'nothing' as const)
/** `storing`: while the result of the call is being stored, which the live history expects, or not. */
const request = { before: meanwhile, during: meanwhile, answer, storing: meanwhile, restarts: fc.boolean() }
const requests = fc.array(fc.record({ ...request, expects: fc.boolean() }), { minLength: 1, maxLength: 12 })

class Log {
  readonly events: Event[] = []
  live = new History(render)
  compactions = 0

  add(...drafts: EventDraft[]): void {
    for (const draft of drafts) {
      const event = stored(draft, this.events.length + 1)
      this.events.push(event)
      this.live.add(event)
    }
  }

  read(): History {
    const history = new History(render)
    for (const event of this.events) history.add(event)
    return history
  }

  happen(all: readonly ('message' | 'compaction')[]): void {
    for (const each of all) {
      if (each === 'message') this.add(userMessage(`message ${this.events.length}`))
      else this.add(this.condensation())
    }
  }

  /** Forgets all but the latest turn, as the plan may. */
  condensation(): EventDraft {
    this.compactions++
    const seqs = [...new Set(this.read().entries.map(({ seq }) => seq))].toSorted((a, b) => a - b)
    const numbers = { max_result_chars: 100, tokens_before: 100, tokens_after: 10 }
    const through = seqs.at(-2) ?? 0
    const places = { forgotten_through_seq: through, shortened_through_seq: 0, kept_message_seqs: [2] }
    return { type: 'Condensation', source: 'environment', trigger: 'request', ...places, ...numbers, summary: 'S.' }
  }
}

const answerTo = (kind: 'text' | 'call' | 'empty', id: string): EventDraft[] => {
  if (kind === 'call') return [answered({ calls: [id] }), toolUse(id)]
  return [answered({ text: kind === 'text' ? `answer ${id}` : '' })]
}

const placeOf = ({ seq, origin }: ListedMessage) => [seq, origin?.eventId]

test('a history that is read again has what was sent, whatever happens while a request is on the wire', () => {
  fc.assert(
    fc.property(requests, (all) => {
      const log = new Log()
      log.add(systemInit(), userMessage('The first message.'))
      let last: { readonly sent: readonly ModelMessage[]; readonly compactions: number } | undefined
      for (const [at, { before, during, answer: kind, storing, restarts, expects }] of all.entries()) {
        log.happen(before)
        if (restarts) log.live = log.read()
        const sent = [...log.live.messagesToSend()]
        expect(findFaults({ messages: sent })).toEqual([])
        if (last?.compactions === log.compactions) expect(sent.slice(0, last.sent.length)).toEqual(last.sent)
        const read_through = log.events.length
        const { compactions } = log
        log.happen(during)
        if (kind === 'nothing') continue
        const [said, ...calls] = answerTo(kind, `call-${at}`)
        log.add({ ...said, read_through } as EventDraft, ...calls)
        if (kind === 'call') {
          const result = toolResult(`call-${at}`, 'done')
          if (expects) expect(log.live.expect(result) && log.live.messagesToSend().at(-1)?.role).toBe('tool')
          log.happen(storing)
          log.add(result)
        }
        last = { sent, compactions }
        const again = log.read()
        expect(again.messages).toEqual(log.live.messages)
        expect(again.entries.map(placeOf)).toEqual(log.live.entries.map(placeOf))
        expect(again.size.of(again.messages, () => 0)).toBe(log.live.size.of(log.live.messages, () => 0))
      }
    }),
    { numRuns: effort(60, 20_000) },
  )
})
