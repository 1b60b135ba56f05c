/** Random messages, runs, compactions, forks, restarts and rewinds: what was rewound reaches no model, and what holds does. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { ForkConversation } from '../../src/contract/conversation.ts'
import { ListEvents } from '../../src/contract/events-api.ts'
import type { Event } from '../../src/contract/events/event.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { readEventPage } from '../../src/events/event-page.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { EMPTY_STATE, fold } from '../../src/state/state.ts'
import { effort } from '../support/patience.ts'
import { call, eventsOf, realShells, say, setBench, tool, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'

type Action =
  | { readonly kind: 'say' | 'post' | 'compact' | 'fork' | 'restart' | 'kill' | 'configure' }
  | { readonly kind: 'rewind'; readonly place: number }

const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof<fc.MaybeWeightedArbitrary<Action>[]>(
    { weight: 6, arbitrary: fc.constant({ kind: 'say' }) },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('rewind'), place: fc.double({ min: 0, max: 1, noNaN: true }) }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constantFrom('post', 'compact', 'fork', 'restart', 'kill', 'configure') }),
    },
  ),
  { minLength: 5, maxLength: 14, size: 'max' },
)

/** What a rewind does not take back. */
const STAYS: readonly string[] = ['ConfigUpdate', 'ForkedFrom']

/** The events that hold, from the log alone: each rewind removes those after its event. */
function activeIn(events: readonly Event[]): Event[] {
  let active: Event[] = []
  for (const event of events) {
    if (event.type === 'Rewound') active = active.filter(({ seq, type }) => seq <= event.to_seq || STAYS.includes(type))
    active.push(event)
  }
  return active
}

/** The words of tests: each is in one message, one answer or one result only. */
const wordsIn = (text: string): ReadonlySet<string> => new Set(text.match(/\bw\d+[a-z]\b/g))

const PADDING = 'and so on '.repeat(150)

async function play(plan: readonly Action[]): Promise<void> {
  let words = 0
  const word = (kind: string) => `w${++words}${kind}`
  const script: Script = ({ messages, text }) => {
    if (text.includes('Write a summary')) return { text: `Summary of ${[...wordsIn(text)].join(' ')}.` }
    return messages.at(-1)?.role === 'tool'
      ? { text: `${word('a')} ${PADDING}` }
      : { calls: [call('Act'), call('Act')] }
  }
  const act = tool('Act', () => ({ output: word('r') }))
  const logs = mortalStore()
  await using bench = await setBench({ script, tools: [act], logs, deps: { createShells: realShells() } })
  let id = await bench.create()
  let live: Conversation = await bench.manager.open(id)
  const checkRequests = async (since: number) => {
    const events = await eventsOf(live)
    const active = activeIn(events)
    const [holds, all] = [wordsIn(JSON.stringify(active)), wordsIn(JSON.stringify(events))]
    for (const { text } of bench.model.requests.slice(since))
      for (const each of wordsIn(text)) expect(holds.has(each) || !all.has(each), `${each} was rewound`).toBe(true)
    const sent = wordsIn(bench.model.requests.at(-1)!.text)
    const isCompacted = active.some(({ type }) => type === 'Condensation')
    const spoken = active.filter(({ type }) => type === 'UserMessage' || type === 'ToolResult')
    if (!isCompacted) for (const each of wordsIn(JSON.stringify(spoken))) expect(sent, `${each} holds`).toContain(each)
  }
  for (const action of plan) {
    const since = bench.model.requests.length
    if (action.kind === 'say') {
      await say(live, `${word('u')} ${PADDING}`)
      await checkRequests(since)
    } else if (action.kind === 'post') await live.post(userText(word('u')))
    else if (action.kind === 'configure') await bench.configure(id, { max_iteration_per_run: 100 + words })
    else if (action.kind === 'compact') {
      const compacted = live.compactions.compact({})
      await compacted.catch((error: unknown) => expect(error).toMatchObject({ code: 'nothing_to_compact' }))
      if (bench.model.requests.length > since) await checkRequests(since)
    } else if (action.kind === 'fork')
      ({ id } = await bench.manager.fork(id, ForkConversation.parse({ workdir: 'share' })))
    else if (action.kind === 'restart') await bench.restart()
    else if (action.kind === 'kill') await bench.restart({ kill: true, between: logs.die })
    else if (action.kind === 'rewind') {
      const { head } = live.log
      const rewound = live.rewind({ to_seq: 1 + Math.floor(action.place * (head - 1)), last_seq: head }, {})
      await rewound.catch(async ({ code, details }: { code: string; details: { nearest: number } }) => {
        expect(code).toBe('invalid_request')
        await live.rewind({ to_seq: details.nearest, last_seq: head }, {})
      })
    }
    live = await bench.manager.open(id)
  }
  const events = await eventsOf(live)
  const page = await readEventPage(live.log, ListEvents.parse({ active: 'true', limit: 1000 }), live.state.rewound)
  expect(page.events.map(({ seq }) => seq)).toEqual(activeIn(events).map(({ seq }) => seq))
  expect(live.state).toEqual(events.reduce(fold, EMPTY_STATE))
  await say(live, word('u'))
  await checkRequests(bench.model.requests.length - 1)
}

test('no request has what was rewound, and each has what holds, whatever else happens', async () => {
  await fc.assert(fc.asyncProperty(actions, play), { numRuns: effort(6, 300) })
})
