/** The events of a run: live and replayed they give a client the same messages. */
import { array, assert, asyncProperty, constantFrom, integer, option, record, tuple } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { AgUiEvent } from '../../src/protocols/ag-ui/ag-ui-event.ts'
import { RunStream } from '../../src/protocols/ag-ui/run-stream.ts'
import { call, setBench, tool } from '../conversations/fixtures.ts'

let script: readonly ScriptedTurn[] = []
let next = 0
const bench = await setBench({
  script: () => script[next++] ?? { text: 'The end.' },
  tools: [
    tool('Work', async () => ({ output: 'done' })),
    tool('Fail', async () => Promise.reject(new Error('broken'))),
  ],
})
afterAll(() => bench[Symbol.asyncDispose]())

const words = array(constantFrom('one', 'two', ' ', '\n', 'ü', '😀'), { maxLength: 8 }).map((parts) => parts.join(''))
const said = record({ reasoning: words, text: words.map((text) => `x${text}`) }, { requiredKeys: ['text'] })
const calls = array(
  constantFrom('Work', 'Fail').map((name) => call(name)),
  { maxLength: 3 },
)
const cut = option(integer({ min: 1, max: 4 }), { nil: undefined })

/** Answers with calls, of which some are cut off and asked for once more, and a last one without calls. */
const scripts = array(tuple(said, calls, cut), { minLength: 1, maxLength: 4 }).map((answers) =>
  answers.flatMap(([answer, own, cutAfter], at): ScriptedTurn[] => {
    const whole = { ...answer, ...(own.length > 0 && at < answers.length - 1 && { calls: own }) }
    return cutAfter === undefined ? [whole] : [{ ...answer, cut_after: cutAfter }, whole]
  }),
)

test('property: live, replayed, and as a snapshot, a client has the same messages', async () => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  await assert(
    asyncProperty(scripts, async (turns) => {
      ;[script, next] = [turns, 0]
      const { seq, event_id: id } = await conversation.post({ message: 'go', run: false })
      const events = async (isReplay: boolean) => {
        const run = { start: seq, through: seq, isReplay, answeredCalls: new Set<string>() }
        const input = { threadId: 'thread', runId: 'run', messages: [{ id, role: 'user', content: 'go' }] }
        const all: AgUiEvent[] = []
        for await (const some of new RunStream(conversation, input, run).events(new AbortController().signal))
          all.push(...some)
        return all
      }
      const following = events(false)
      await conversation.run()
      const [live, replayed] = [await following, await events(true)]
      for (const all of [live, replayed]) {
        expect(all.map(({ type }) => type).filter((type) => type.startsWith('RUN'))).toEqual([
          'RUN_STARTED',
          expect.stringMatching(/^RUN_(FINISHED|ERROR)$/),
        ])
        expect(all.at(-1)).toEqual(live.at(-1))
      }
      expect(messagesOf(live, [{ id, role: 'user', content: 'go' }])).toEqual(messagesOf(replayed))

      // A page that has nothing gets the same, at the beginning of the next run.
      const { seq: after, event_id } = await conversation.post({ message: 'and', run: false })
      const input = { threadId: 'thread', runId: 'run', messages: [] }
      const run = { start: after, through: after, isReplay: true, answeredCalls: new Set<string>() }
      const stream = new RunStream(conversation, input, run).events(new AbortController().signal)
      const heads = [await stream.next(), await stream.next()].flatMap(({ value }) => value ?? [])
      await stream.return()
      expect(messagesOf(heads).slice(0, -1)).toEqual(messagesOf(replayed))
      await conversation.withdrawals.withdraw(event_id)
    }),
    { numRuns: 20 },
  )
})

type Call = { id: string; type: string; function: { name: unknown; arguments: string } }
type Kept = { id: string; role: string; content?: string; toolCallId?: unknown; toolCalls?: Call[] }

/** What a client keeps of events. */
function messagesOf(events: readonly AgUiEvent[], own: readonly Kept[] = []): Kept[] {
  let messages: Kept[] = [...own]
  const message = (id: unknown, role: string): Kept => {
    const found = messages.find((each) => each.id === id)
    if (found) return found
    messages.push({ id: String(id), role })
    return messages.at(-1)!
  }
  for (const { type, messageId, delta, toolCallId, ...event } of events) {
    if (type === 'MESSAGES_SNAPSHOT') messages = structuredClone(event['messages']) as Kept[]
    if (type === 'TEXT_MESSAGE_CONTENT' || type === 'REASONING_MESSAGE_CONTENT') {
      const grown = message(messageId, type.startsWith('TEXT') ? 'assistant' : 'reasoning')
      grown.content = (grown.content ?? '') + String(delta)
    }
    if (type === 'TOOL_CALL_START') {
      const { toolCallName: name, parentMessageId } = event
      const calls = (message(parentMessageId, 'assistant').toolCalls ??= [])
      calls.push({ id: String(toolCallId), type: 'function', function: { name, arguments: '' } })
    }
    if (type === 'TOOL_CALL_ARGS')
      for (const call of messages.flatMap(({ toolCalls = [] }) => toolCalls))
        if (call.id === toolCallId) call.function.arguments += String(delta)
    if (type === 'TOOL_CALL_RESULT') {
      const { role, content } = event
      messages.push({ id: String(messageId), role: String(role), toolCallId, content: String(content) })
    }
  }
  return messages.filter(({ role, content }) => role !== 'reasoning' || content !== '')
}
