/** `events()` over cut connections, restarts and crashes of a real server: each event once, in order, and no gap. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AgentServerError } from '../../src/client/request/agent-server-error.ts'
import { createClient } from '../../src/client/client.ts'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { startCutProxy } from '../support/cut-proxy.ts'
import { postOnce } from '../support/post-once.ts'
import { KEY } from '../support/server.ts'
import { until } from '../support/until.ts'

const WORDS = Array.from({ length: 120 }, (_, i) => `word${i}`).join(' ')

let stage: Stage
let proxy: Awaited<ReturnType<typeof startCutProxy>>
beforeAll(async () => {
  stage = await setStage({ replies: [{ turns: [{ text: WORDS, chunk_delay_ms: 15 }] }] })
  proxy = await startCutProxy(new URL(stage.server.url))
})
afterAll(async () => {
  await proxy.close()
  await stage[Symbol.asyncDispose]()
})

const connect = (more: Partial<Parameters<typeof createClient>[0]> = {}) =>
  createClient({ baseUrl: proxy.url, apiKey: KEY, ...more })

test('shows each event once and in order, over cut connections, SIGTERM and kill -9', async () => {
  const { server } = stage
  const conversation = connect().conversation(await stage.create())
  const lost: AgentServerError[] = []
  const abort = new AbortController()
  const seqs: number[] = []
  const names: unknown[] = []
  const reading = (async () => {
    const options = { signal: abort.signal, onDisconnect: (reason: AgentServerError) => lost.push(reason) }
    for await (const event of conversation.events(options)) {
      seqs.push(event.seq)
      if (event.type === 'ClientEvent') names.push(event.name)
    }
  })()
  const wanted: string[] = []
  const postUntil = async (count: number) => {
    while (wanted.length < count) await postOnce(server, conversation.id, wanted[wanted.push(`${wanted.length}`) - 1]!)
    await expect.poll(() => names.length).toBe(count)
  }
  await postUntil(3)
  for (const disturb of [
    async () => proxy.cut(),
    () => server.restart('SIGTERM'),
    () => server.restart('SIGKILL'),
    async () => proxy.cut(),
  ]) {
    await Promise.all([disturb(), postUntil(wanted.length + 6)])
  }
  abort.abort(new Error('enough'))
  await expect(reading).rejects.toThrow('enough')
  expect(names).toEqual(wanted)
  expect(seqs).toEqual(seqs.map((_, i) => i + 1))
  expect(lost.length).toBeGreaterThanOrEqual(4)
})

test('a message and its run survive cut connections, and its live text arrives without gap or duplicate', async () => {
  // The answer may be complete before a client is back that was cut off.
  await until('live text after two cuts', async () => (await talkOverCuts()) > 200)
})

/** Returns how much of the answer has arrived live. */
async function talkOverCuts(): Promise<number> {
  const conversation = connect().conversation(await stage.create())
  let text = ''
  let cuts = 0
  const reading = (async () => {
    for await (const event of conversation.events({ deltas: true, types: ['AssistantMessage'] })) {
      if (event.type === 'AssistantMessage') return
      if (event.type !== 'AssistantDelta') continue
      text += event.text_delta ?? ''
      if (cuts < 2 && text.length > 100 * (cuts + 1)) {
        cuts += 1
        proxy.cut()
      }
    }
  })()
  const { result } = await conversation.sendAndWait('talk')
  expect(result?.final_text).toBe(WORDS)
  await reading
  // The end may be missing after a late cut: the complete text is in the message.
  expect(WORDS.slice(0, text.length)).toBe(text)
  expect(await conversation.countEvents({ types: ['UserMessage'] })).toEqual({ count: 1 })
  return text.length
}

test('starts after a seq, shows only the requested types, and ends when the conversation is deleted', async () => {
  const conversation = connect().conversation(await stage.create())
  for (const name of ['a', 'b', 'c']) await conversation.postEvent({ name })
  const { items } = await conversation.listEvents({ types: ['ClientEvent'] })
  const seen: string[] = []
  for await (const { name } of conversation.events({ after: items[0]!.seq, types: ['ClientEvent'] })) {
    seen.push(name)
    if (name === 'c') await conversation.delete()
  }
  expect(seen).toEqual(['b', 'c'])
  await expect(conversation.events().next()).rejects.toMatchObject({ code: 'conversation_deleted', status: 410 })
})

test('the firehose has the events of all conversations, and continues after a cursor', async () => {
  const client = connect()
  const [first, second] = [client.conversation(await stage.create()), client.conversation(await stage.create())]
  const conversation_ids = [first.id, second.id]
  const read = async (cursor: string, count: number) => {
    const seen: { cursor: string | undefined; name: string }[] = []
    for await (const { cursor: at, event } of client.firehose({ cursor, types: ['ClientEvent'], conversation_ids })) {
      if (event.type === 'ClientEvent') seen.push({ cursor: at, name: event.name })
      if (seen.length === 1) proxy.cut()
      if (seen.length === count) break
    }
    return seen
  }
  await first.postEvent({ name: 'a' })
  await second.postEvent({ name: 'b' })
  await first.postEvent({ name: 'c' })
  const seen = await read('0', 3)
  // In order within a conversation.
  expect(['abc', 'acb', 'bac']).toContain(seen.map(({ name }) => name).join(''))
  expect(await read(seen[0]!.cursor!, 2)).toEqual(seen.slice(1))
})

test('the firehose has the rows of conversations that change, if a client asks for them', async () => {
  const client = connect()
  const id = await stage.create({ title: 'row' })
  const titles: (string | undefined)[] = []
  const read = async () => {
    for await (const { event } of client.firehose({ types: ['Result'], conversation_ids: [id], summaries: true })) {
      if (event.type === 'ConversationSummary') titles.push(event.summary.title)
      if (titles.includes('renamed')) return
    }
  }
  const reading = read()
  // The first row says that the firehose is open.
  await until('a row', async () => {
    await client.conversation(id).postEvent({ name: 'changed' })
    return titles.length > 0
  })
  await client.conversation(id).updateConfig({ title: 'renamed' })
  await reading
  expect(titles.at(-1)).toBe('renamed')
})

test('the firehose without a cursor loses nothing, though it is cut off before its first event', async () => {
  const opened = Promise.withResolvers<void>()
  const client = connect({
    async fetch(input, init) {
      const response = await fetch(input, init)
      if (response.headers.has('x-firehose-cursor')) opened.resolve()
      return response
    },
  })
  const conversation = client.conversation(await stage.create())
  await conversation.postEvent({ name: 'before' })
  const lost = Promise.withResolvers<void>()
  const events = client.firehose({ types: ['ClientEvent'], onDisconnect: () => lost.resolve() })
  const next = events.next()
  await opened.promise
  proxy.cut()
  await lost.promise
  await postOnce(stage.server, conversation.id, 'meanwhile')
  expect((await next).value).toMatchObject({ event: { name: 'meanwhile' } })
  await events.return(undefined)
})

test('fails soon without a server, and later only after an outage that lasts', async () => {
  const nobody = connect({ baseUrl: 'http://127.0.0.1:1', maxRetries: 1 })
  await expect(nobody.conversation('x').events().next()).rejects.toMatchObject({ code: 'connection_failed' })

  const passing = await startCutProxy(new URL(stage.server.url))
  const conversation = connect({ baseUrl: passing.url }).conversation(await stage.create())
  const events = conversation.events({ giveUpAfterMs: 300 })
  expect((await events.next()).value).toMatchObject({ seq: 1 })
  await passing.close()
  await expect(Array.fromAsync(events)).rejects.toMatchObject({ code: 'connection_failed' })
})
