/** The events of a run: live and replayed they give a client the same messages. */
import { assert, asyncProperty } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { AgUiEvent } from '../../src/protocols/ag-ui/ag-ui-event.ts'
import { RunStream } from '../../src/protocols/ag-ui/run-stream.ts'
import { setTurnBench, turnScripts } from '../support/turn-scripts.ts'

const bench = await setTurnBench()
afterAll(() => bench[Symbol.asyncDispose]())

test('property: live, replayed, and as a snapshot, a client has the same messages', async () => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  await assert(
    asyncProperty(turnScripts, async (turns) => {
      bench.play(turns)
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
