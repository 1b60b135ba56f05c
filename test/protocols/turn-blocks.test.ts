/** Answers of several blocks, as some providers send them: live and replayed they are the same to a reader. */
import { array, assert, asyncProperty, boolean, constantFrom, record } from 'fast-check'
import { expect, test } from 'vitest'
import { takeTurn } from '../../src/agent/model/turn.ts'
import type { Event, EventDraft } from '../../src/contract/events/event.ts'
import type { TransientDraft, TransientEvent } from '../../src/contract/events/transient-event.ts'
import { Projection } from '../../src/protocols/acp/projection.ts'
import { AnswerAssembly } from '../../src/llm/answer/answer-assembly.ts'
import { NOTHING } from '../../src/llm/answer/chunk.ts'
import type { AnswerStream } from '../../src/llm/llm.ts'
import { ResponseBuilder } from '../../src/protocols/openai/response-builder.ts'
import { TurnChanges } from '../../src/protocols/items/turn-changes.ts'
import type { TurnChange } from '../../src/protocols/items/turn-changes.ts'

type Block = { readonly kind: 'text' | 'reasoning'; readonly pieces: readonly string[]; readonly isSigned: boolean }

const pieces = array(constantFrom('one', 'two', ' ', '\n', '😀'), { minLength: 1, maxLength: 4 })
const blocks = array(record({ kind: constantFrom<Block['kind']>('text', 'reasoning'), pieces, isSigned: boolean() }), {
  maxLength: 6,
})

/** The stream of a model that says these blocks, one after the other. */
async function* streamOf(said: readonly Block[]): AnswerStream {
  const assembly = new AnswerAssembly({ model: 'scripted', takenIds: new Set(), costOf: () => undefined })
  for (const [at, { kind, pieces: texts, isSigned }] of said.entries())
    for (const text of texts) {
      const proof = { provider: 'anthropic', kind: 'signature', data: `of ${at}` } as const
      const block = { ...NOTHING, block: String(at), ...(isSigned && kind === 'reasoning' && { proof }) }
      yield* assembly.add({ ...block, [kind]: text })
    }
  assembly.add({ ...NOTHING, text: said.length > 0 ? '' : 'x', finishReason: 'end_turn' })
  return assembly.finish()
}

/** What is published and stored, in this order. */
async function eventsOf(said: readonly Block[]): Promise<Draft[]> {
  const all: Draft[] = []
  const deps = {
    runId: crypto.randomUUID(),
    readThrough: 1,
    emit: async (drafts: readonly EventDraft[]) => void all.push(...drafts),
    publish: (draft: TransientDraft) => void all.push(draft),
  }
  await takeTurn(streamOf(said), deps, new AbortController().signal)
  return all
}

type Draft = EventDraft | TransientDraft

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what a draft lacks of an event is not read
const asEvent = (draft: Draft) => draft as Event | TransientEvent

/** What a reader has in the end: the items of a response, and where each change is. */
function readBy(drafts: readonly Draft[]) {
  const changes = new TurnChanges()
  const builder = new ResponseBuilder({ asksApproval: false, isStructured: false })
  const taken: TurnChange[] = []
  for (const change of drafts.flatMap((draft) => [...changes.add(asEvent(draft))])) {
    taken.push(change)
    builder.add(change)
  }
  const texts = { reasoning: '', text: '' }
  for (const change of taken) if (change.type === 'grown') texts[change.kind] += change.text
  return { items: builder.output, ends: taken.filter(({ type }) => type !== 'grown'), texts }
}

/** What an editor shows: all of one kind, together. */
function shownBy(drafts: readonly Draft[]) {
  const projection = new Projection({ workdir: '/', isOwn: () => true, showsNotices: false })
  const texts = { agent_message_chunk: '', agent_thought_chunk: '' }
  for (const update of drafts.flatMap((draft) => projection.take(asEvent(draft)))) {
    const { sessionUpdate: kind } = update
    if (kind === 'agent_message_chunk' || kind === 'agent_thought_chunk')
      texts[kind] += update.content.type === 'text' ? update.content.text : ''
  }
  return { message: texts.agent_message_chunk.trim(), thought: texts.agent_thought_chunk }
}

test('property: an answer of several blocks has the same items, ids and texts live and replayed', async () => {
  await assert(
    asyncProperty(blocks, async (said) => {
      const all = await eventsOf(said)
      const stored = all.filter(({ type }) => type === 'AssistantMessage')
      const live = readBy(all)
      expect(live).toEqual(readBy(stored))
      // Each text is complete in the end as it grew.
      for (const change of live.ends) if (change.type === 'complete') expect(live.texts[change.kind]).toBe(change.text)
      expect(live.ends.filter(({ type }) => type === 'begun').length).toBe(live.items.length)
      expect(shownBy(all)).toEqual(shownBy(stored))
    }),
    { numRuns: 300 },
  )
})
