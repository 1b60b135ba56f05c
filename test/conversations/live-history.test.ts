/** When an agent reads its history from the log, and when it has it already. */
import { expect, test } from 'vitest'
import { LiveHistory } from '../../src/conversations/agents/live-history.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { ReadOptions } from '../../src/events/event-store.ts'
import { answered, toolResult, toolUse } from './events.ts'
import { say, setBench } from './fixtures.ts'

const NOTHING_LEFT_OUT = { forgotten: undefined, rewound: [] }

/** `load` returns the history as a run gets it. */
function follow({ log }: Pick<Conversation, 'log'>) {
  const live = new LiveHistory()
  const counted = {
    reads: 0,
    get head() {
      return log.head
    },
    read(options: ReadOptions) {
      counted.reads++
      return log.read(options)
    },
  }
  const { signal } = new AbortController()
  log.subscribe({
    onEvents: (events) => {
      for (const { event } of events) live.take(event)
    },
  })
  const load = () => live.load(counted, (_, output) => JSON.stringify(output), signal, NOTHING_LEFT_OUT)
  return { counted, load }
}

test('a history that is still in memory is not read again, and equals one that is', async () => {
  await using bench = await setBench()
  const conversation = await bench.converse()
  await say(conversation)
  const { counted, load } = follow(conversation)
  const history = await load()
  const before = history.messages.length
  await say(conversation)
  expect(await load()).toBe(history)
  expect(counted.reads).toBe(1)
  const fresh = await follow(conversation).load()
  expect(history.messages.length).toBeGreaterThan(before)
  expect(history.messagesToSend()).toEqual(fresh.messagesToSend())
  expect(history.system).toBe(fresh.system)
})

test('a history with a result that is not stored is read again', async () => {
  await using bench = await setBench()
  const conversation = await bench.converse()
  const { load } = follow(conversation)
  const history = await load()
  await conversation.log.append([answered({ text: '', calls: ['a'] }), toolUse('a')])
  expect(history.expect(toolResult('a', 'done'))).toBe(true)
  const again = await load()
  expect(again).not.toBe(history)
  await conversation.log.append([toolResult('a', 'done')])
  expect(await load()).toBe(again)
})
