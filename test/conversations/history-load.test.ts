/** What of a log a run reads before its first request, and that nobody has to wait for it. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ReadOptions } from '../../src/events/event-store.ts'
import type { EventDraft } from '../../src/contract/events/event.ts'
import { serialiseDraft, storedFromDraft } from '../../src/storage/shared/stored-event.ts'
import { answered, toolResult } from './events.ts'
import type { Bench } from './fixtures.ts'
import { eventsOf, only, say, setBench, userText } from './fixtures.ts'
import { mortalStore } from './mortal-store.ts'

async function notedSeq(bench: Bench, id: string): Promise<number> {
  const meta = JSON.parse(await readFile(join(bench.sessionOf(id), 'meta.json'), 'utf8'))
  return (meta as { lastSeq: number }).lastSeq
}

test('a run parses only events that are sent to the model', async () => {
  await using bench = await setBench()
  const conversation = await bench.converse()
  const { seq } = await conversation.clientEvents.post({ name: 'mark', data: { text: 'for clients' } })
  await say(conversation)
  await expect.poll(() => notedSeq(bench, conversation.id)).toBeGreaterThan(seq)
  const path = join(bench.sessionOf(conversation.id), 'events.jsonl')
  await bench.restart({
    between: async () => {
      const lines = (await readFile(path, 'utf8')).split('\n')
      lines[seq - 1] = lines[seq - 1]!.replace('"for clients"', '"for clients,')
      await writeFile(path, lines.join('\n'))
    },
  })
  const again = await bench.manager.open(conversation.id)
  await expect(eventsOf(again), 'a reader of that event gets an error').rejects.toMatchObject({
    code: 'conversation_damaged',
  })
  expect(await say(again)).toMatchObject({ stop_reason: 'completed' })
  expect(bench.model.requests.at(-1)!.body.messages.map(({ role }) => role)).toEqual([
    'system',
    'user',
    'assistant',
    'user',
  ])
})

test('a run parses neither what a compaction forgot nor what subagents did', async () => {
  await using bench = await setBench()
  const conversation = await bench.converse()
  const { id } = conversation
  await say(conversation)
  const path = join(bench.sessionOf(id), 'events.jsonl')
  const add = (lines: string[], draft: EventDraft) => {
    const line = serialiseDraft(draft, { ms: Date.now(), conversationId: id })
    return lines.push(storedFromDraft(lines.length + 1, line).json)
  }
  await bench.restart({
    between: async () => {
      const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
      for (const task of [{}, { parent_tool_use_id: 'task', agent_name: 'helper' }]) {
        add(lines, { ...task, ...answered({ text: 'It was long.', calls: ['old'] }) })
        add(lines, { ...task, ...toolResult('old', 'a long output') })
        if (!('agent_name' in task)) add(lines, condensationThrough(lines.length))
      }
      await writeFile(path, `${lines.join('\n')}\n`)
    },
  })
  const { seq } = await (await bench.manager.open(id)).post(userText('Is that stored?'))
  await expect.poll(() => notedSeq(bench, id)).toBeGreaterThanOrEqual(seq)
  await bench.restart({
    between: async () => {
      const text = await readFile(path, 'utf8')
      await writeFile(path, text.replaceAll('"a long output"', '"a long output,').replaceAll('long."', 'long.,'))
    },
  })
  const again = await bench.manager.open(id)
  expect(await say(again)).toMatchObject({ stop_reason: 'completed' })
  const { messages } = bench.model.requests.at(-1)!.body
  expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'user', 'user'])
  expect(messages[1]!.content).toContain('It was all said.')
})

const condensationThrough = (seq: number): EventDraft => ({
  type: 'Condensation',
  source: 'environment',
  trigger: 'threshold',
  forgotten_through_seq: seq,
  kept_message_seqs: [],
  summary: 'It was all said.',
  shortened_through_seq: seq,
  max_result_chars: 1000,
  tokens_before: 1000,
  tokens_after: 10,
})

const LONG = 'x'.repeat(300_000)

const pause = async ({ manager }: Bench, id: string) =>
  void (await (await manager.open(id)).pause({ interrupt: false }))
const remove = async ({ manager }: Bench, id: string) => await manager.delete(id)

test.each([
  ['pause', pause],
  ['delete', remove],
] as const)('%s ends the reading of a long log between two pages', async (_, end) => {
  const store = mortalStore()
  const [reading, mayRead] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let pages = 0
  const open = store.open.bind(store)
  store.open = async (id) => {
    const opened = await open(id)
    const read = opened.log.read.bind(opened.log)
    opened.log.read = async (options: ReadOptions) => {
      if (!options.types?.has('AssistantMessage')) return await read(options)
      pages++
      reading.resolve()
      await mayRead.promise
      return await read(options)
    }
    return opened
  }
  await using bench = await setBench({ logs: store })
  const conversation = await bench.converse()
  const { id } = conversation
  for (let i = 0; i < 8; i++) await conversation.post(userText(LONG))
  await bench.restart()
  await (await bench.manager.open(id)).run()
  await reading.promise
  const ended = end(bench, id)
  // From then on the delete is at the run.
  if (end === remove) await expect.poll(() => bench.manager.count({}).count).toBe(0)
  mayRead.resolve()
  await ended
  expect(pages).toBe(1)
  expect(bench.model.requests).toEqual([])
  if (end === pause)
    expect(only(await eventsOf(await bench.manager.open(id)), 'Result')).toMatchObject([{ stop_reason: 'paused' }])
})
