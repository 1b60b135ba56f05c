/** Responses and chat completions live and replayed: a client has the same, whatever the agent did. */
import { assert, asyncProperty, integer } from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { TurnStep } from '../../src/protocols/items/follow-turn.ts'
import { followTurn, readTurn } from '../../src/protocols/items/follow-turn.ts'
import { ChatBuilder } from '../../src/protocols/openai/chat-builder.ts'
import type { ResponseEvent } from '../../src/protocols/openai/response-builder.ts'
import { ResponseBuilder } from '../../src/protocols/openai/response-builder.ts'
import { setTurnBench, turnScripts } from '../support/turn-scripts.ts'

const bench = await setTurnBench()
afterAll(() => bench[Symbol.asyncDispose]())

type Steps = AsyncIterable<TurnStep>

/** Plays the turns of the model, and reads the turn while it happens, and then from its log. */
async function liveAndReplayed<T>(conversation: Conversation, read: (steps: Steps) => Promise<T>) {
  const { seq: start } = await conversation.post({ message: 'go', run: false })
  const following = read(followTurn(conversation.log, start, new AbortController().signal))
  await conversation.run()
  const replay = () => readTurn(conversation.log, start)
  return { live: await following, replayed: await read(replay()), replay }
}

async function readResponse(steps: Steps, after = -1) {
  const builder = new ResponseBuilder({ asksApproval: true, isStructured: false })
  const events: ResponseEvent[] = []
  for await (const { change, event } of steps) {
    if (event?.type === 'AssistantMessage') builder.count(event.usage)
    if (change) events.push(...builder.add(change, after))
  }
  const { output, end, usage } = builder
  return { whole: { output, end, usage }, events }
}

test('property: a response is the same live, replayed, and continued after any of its events', async () => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  await assert(
    asyncProperty(turnScripts, integer({ min: 0, max: 1000 }), async (turns, cut) => {
      bench.play(turns)
      const { live, replayed, replay } = await liveAndReplayed(conversation, readResponse)
      expect(replayed.whole).toEqual(live.whole)
      expect(replayed.whole.end).toBeDefined()
      for (const { events, whole } of [live, replayed]) {
        const numbers = events.map(({ sequence_number: number }) => number)
        expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b))
        expect(events.flatMap(doneItem)).toEqual(whole.output)
      }
      const stored = kept(replayed.events)
      expect(kept(live.events)).toEqual(stored)
      const had = live.events.slice(0, cut % (live.events.length + 1))
      const { events: rest } = await readResponse(replay(), had.at(-1)?.sequence_number)
      expect(kept([...had, ...rest])).toEqual(stored)
    }),
    { numRuns: 15 },
  )
})

type Item = { readonly id: string; readonly status?: string }

const itemOf = ({ item }: Omit<ResponseEvent, 'sequence_number'>) => item as Item | undefined

function doneItem(event: ResponseEvent): Item[] {
  const item = event.type === 'response.output_item.done' ? itemOf(event) : undefined
  return item && item.status !== 'incomplete' ? [item] : []
}

/** What a client keeps of a stream: each text as one, and no attempt that was given up. These alone have a place in the live stream only. */
function kept(events: readonly ResponseEvent[]): unknown[] {
  const wholeIds = new Set(events.flatMap(doneItem).map(({ id }) => id))
  const texts = new Map<string, string>()
  const others: unknown[] = []
  for (const { output_index: _, sequence_number: __, ...event } of events) {
    const id = (event['item_id'] as string | undefined) ?? itemOf(event)?.id ?? ''
    if (!wholeIds.has(id)) continue
    if (event.type.endsWith('text.delta')) texts.set(id, (texts.get(id) ?? '') + String(event['delta']))
    else others.push(event)
    if (event.type.endsWith('text.done')) expect(texts.get(id)).toBe(event['text'])
  }
  return [...others, ...texts]
}

test('property: an answer of a chat is the same live and replayed, and so is its stream', async () => {
  const conversation = await bench.converse({ tools: ['Bash'] })
  const read = async (steps: Steps) => {
    const flags = { conversationId: conversation.id, isTemporary: false, isStructured: false, functions: new Set('') }
    const builder = new ChatBuilder(flags)
    const streamed = { content: '', reasoning_content: '' }
    for await (const step of steps)
      for (const delta of builder.addStep(step)) {
        streamed.content += delta.content ?? ''
        streamed.reasoning_content += delta.reasoning_content ?? ''
      }
    const { content, reasoning, calls, finish, usage, failure } = builder
    return { whole: { content, reasoning, calls, finish, usage, failure }, streamed }
  }
  await assert(
    asyncProperty(turnScripts, async (turns) => {
      bench.play(turns)
      const { live, replayed } = await liveAndReplayed(conversation, read)
      expect(replayed.whole).toEqual(live.whole)
      expect(replayed.whole.finish).toBe('stop')
      // A stream cannot take back what it has shown of an attempt that was given up: the whole follows it.
      expect(live.streamed.content.endsWith(lastBlock(replayed.streamed.content))).toBe(true)
      if (turns.some(({ cut_after: cut }) => cut !== undefined)) return
      expect(live.streamed).toEqual(replayed.streamed)
      expect(replayed.streamed).toEqual({
        content: replayed.whole.content,
        reasoning_content: replayed.whole.reasoning,
      })
    }),
    { numRuns: 15 },
  )
})

const lastBlock = (text: string): string => text.split('\n\n').at(-1)!
