/** The UI message stream live, replayed and as stored messages: the same message, whatever the agent did. */
import { assert, asyncProperty } from 'fast-check'
import type { UIMessage, UIMessageChunk } from 'ai'
import { uiMessageChunkSchema } from 'ai'
import { afterAll, expect, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import { ChunkBuilder } from '../../src/protocols/ai-sdk/chunk-builder.ts'
import { readHistory } from '../../src/protocols/ai-sdk/read-history.ts'
import type { UiChunk } from '../../src/protocols/ai-sdk/ui-chunk.ts'
import type { TurnStep } from '../../src/protocols/items/follow-turn.ts'
import { followTurn, readTurn } from '../../src/protocols/items/follow-turn.ts'
import { setTurnBench, turnScripts } from '../support/turn-scripts.ts'
import { lastOf, plainMessages } from '../support/ui-chat.ts'

const bench = await setTurnBench()
afterAll(() => bench[Symbol.asyncDispose]())

test('property: a client has the same message live, replayed and from the stored messages', async () => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  await assert(
    asyncProperty(turnScripts, async (turns) => {
      bench.play(turns)
      const { seq: start } = await conversation.post({ message: 'go', run: false })
      const live = chunksOf(conversation, start, followTurn(conversation.log, start, new AbortController().signal))
      await conversation.run()
      const [liveChunks, replayed] = [
        await live,
        await chunksOf(conversation, start, readTurn(conversation.log, start)),
      ]
      const message = await messageOf(liveChunks)
      expect(message).toEqual(await messageOf(replayed))
      const stored = (await readHistory(conversation)).at(-1)
      // An agent that has said nothing has no message.
      if (message.parts.length > 0) expect(stored).toEqual(message)
      else expect(stored!.role).toBe('user')
      await expectNewest(conversation, 4000)
    }),
    { numRuns: 20 },
  )
  const [all, newest] = [await readHistory(conversation), await readHistory(conversation, 4000)]
  expect(newest.length).toBeLessThan(all.length)
})

/** A page has whole messages, from the beginning of a turn on. */
async function expectNewest(conversation: Conversation, maxChars: number): Promise<void> {
  const [all, newest] = [await readHistory(conversation), await readHistory(conversation, maxChars)]
  expect(newest.length).toBeGreaterThan(0)
  expect(newest).toEqual(all.slice(-newest.length))
}

test('a page has about 4 MiB', async () => {
  const conversation = await bench.converse()
  for (const each of 'abcd') await conversation.post({ message: each.repeat(1_500_000), run: false })
  expect((await readHistory(conversation)).map(({ role }) => role)).toEqual(['user', 'user', 'user'])
})

async function chunksOf({ id: conversationId }: Conversation, start: number, steps: AsyncIterable<TurnStep>) {
  const builder = new ChunkBuilder({ conversationId, start }, { clientToolsAt: () => new Set() })
  const chunks: UiChunk[] = [...builder.begin()]
  for await (const step of steps) chunks.push(...builder.add(step))
  return [...chunks, ...builder.end()]
}

/** As the client reads it. It refuses what it does not know. */
async function messageOf(chunks: readonly UiChunk[]): Promise<UIMessage> {
  const read: UIMessageChunk[] = []
  const schema = uiMessageChunkSchema()
  for (const chunk of chunks) {
    const result = await schema.validate!(JSON.parse(JSON.stringify(chunk)))
    if (!result.success) throw result.error
    if (result.value.type !== 'error') read.push(result.value)
  }
  const message = (await lastOf(ReadableStream.from(read)))!
  // Only who was there knows that an attempt began of which nothing is left.
  const parts = message.parts.at(-1)?.type === 'step-start' ? message.parts.slice(0, -1) : message.parts
  return plainMessages([{ ...message, parts }])[0]!
}
