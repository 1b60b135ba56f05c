/** Rows of conversations on the firehose: who gets them, which, and how many. */
import { afterAll, describe, expect, test } from 'vitest'
import { ConversationSummaryFrame } from '../../src/contract/conversations/summary.ts'
import { ChangedSummaries } from '../../src/http/streams/changed-summaries.ts'
import type { StoredEvent } from '../../src/events/event-store.ts'
import { message } from '../events/fixtures.ts'
import { connectAs } from '../support/socket.ts'
import { subscribe } from '../support/stream.ts'
import { until } from '../support/until.ts'
import { KEY, setHttp } from './fixtures.ts'

const http = await setHttp()
afterAll(() => http[Symbol.asyncDispose]())
const url = await http.listen()
const MASTER = { authorization: `Bearer ${KEY}` }

const say = async (id: string, text = 'hello') => (await http.bench.manager.open(id)).log.append([message(text)])
const rowOf = async (id: string) =>
  (await http.call('GET', '/conversations/summaries')).body.items.find((row: { id: string }) => row.id === id)

describe('a reader of the firehose with summaries', () => {
  const streams = {
    'event stream': async (query: string, header = MASTER) => {
      const stream = await subscribe(url, `/firehose?${query}`, header)
      return { frames: () => stream.frames.map(({ data }) => data), close: stream.close }
    },
    socket: async (query: string, header = MASTER) => {
      const socket = await connectAs(url, `/firehose?${query}`, { headers: header })
      await socket.until(({ type }) => type === 'ready')
      return { frames: () => socket.frames, close: socket.close }
    },
  }

  test.each(Object.entries(streams))('gets the row of each conversation that changes: as %s', async (_, open) => {
    const stream = await open('summaries=true&types=Result')
    const id = await http.create({ title: 'changes' })
    await say(id, 'what a list shows')
    const row = await rowOf(id)
    const newest = () => stream.frames().findLast(({ type, conversation_id }) => type && conversation_id === id)
    await until('the row', async () => newest()?.summary?.last_seq === row.last_seq)
    expect(newest()).toEqual({ type: 'ConversationSummary', conversation_id: id, summary: row })
    expect(ConversationSummaryFrame.parse(newest())).toMatchObject({
      summary: { title: 'changes', preview: 'what a list shows', status: 'idle' },
    })
    expect(new Set(stream.frames().map(({ type }) => type))).not.toContain('UserMessage')
    stream.close()
  })

  test('gets none of a conversation that its key does not see, or that it does not name', async () => {
    const { body } = await http.call('POST', '/keys', { name: 'a test', scopes: ['read'], user_id: 'user-rows' })
    const [mine, theirs] = [await http.create({ user_id: 'user-rows' }), await http.create({ user_id: 'user-18' })]
    const limited = await streams.socket('summaries=true', { authorization: `Bearer ${body.key}` })
    const named = await streams.socket(`summaries=true&conversation_ids=${mine}`)
    await say(theirs)
    await say(mine)
    for (const stream of [limited, named]) {
      await until('its row', async () => stream.frames().some(({ type }) => type === 'ConversationSummary'))
      expect(JSON.stringify(stream.frames())).not.toContain(theirs)
      stream.close()
    }
  })

  test('is the only one that gets them', async () => {
    const [asking, other] = [await streams.socket('summaries=true'), await streams.socket('')]
    const id = await http.create()
    await until('the row', async () => asking.frames().some(({ type }) => type === 'ConversationSummary'))
    await say(id)
    await until('the event', async () => other.frames().some(({ type }) => type === 'UserMessage'))
    expect(other.frames().filter(({ type }) => type === 'ConversationSummary')).toEqual([])
    for (const stream of [asking, other]) stream.close()
  })
})

describe('rows', () => {
  const eventOf = (conversation_id: string) => ({ event: { conversation_id } }) as StoredEvent
  const summaryOf = (id: string) => ({ id }) as ConversationSummaryFrame['summary']

  function setRows(
    read: (ids: readonly string[]) => Promise<readonly ConversationSummaryFrame['summary'][]>,
    now?: () => number,
  ) {
    let publish: (events: readonly StoredEvent[]) => void = () => {}
    const reader = {
      subscribe({ onEvents }: { onEvents?: (events: readonly StoredEvent[]) => void }) {
        publish = onEvents!
        return () => (publish = () => {})
      },
    }
    const sentIds: string[] = []
    const rows = new ChangedSummaries(reader, {
      read,
      only: ({ event }) => event.conversation_id !== 'unseen',
      ...(now && { now }),
    })
    const leave = rows.subscribe(({ event }) => sentIds.push(event.conversation_id))
    return { sentIds, leave, change: (...ids: string[]) => publish(ids.map(eventOf)) }
  }

  test('of a conversation do not wait for the interval of another one', async () => {
    let time = 0
    const { sentIds, leave, change } = setRows(
      async (ids) => ids.map(summaryOf),
      () => time,
    )
    change('busy')
    await until('its row', async () => sentIds.length === 1)
    change('busy', 'other')
    await until('the row of the other one', async () => sentIds.length === 2)
    expect(sentIds).toEqual(['busy', 'other'])
    time = 100
    await until('the next row', async () => sentIds.length === 3)
    expect(sentIds).toEqual(['busy', 'other', 'busy'])
    leave()
  })

  test('of a conversation that changes while one is read are one row', async () => {
    const reads: (readonly string[])[] = []
    const first = Promise.withResolvers<void>()
    let time = 0
    const read = async (ids: readonly string[]) => {
      reads.push(ids)
      if (reads.length === 1) await first.promise
      return ids.map(summaryOf)
    }
    const { sentIds, change, leave } = setRows(read, () => time)
    change('a', 'a', 'unseen')
    await until('a read', async () => reads.length === 1)
    for (let i = 0; i < 100; i++) change('a', 'b')
    time = 100
    first.resolve()
    await until('the rows', async () => sentIds.length === 3)
    expect(reads).toEqual([['a'], ['a', 'b']])
    leave()
  })

  test('that could not be read are read again', async () => {
    let failures = 2
    const { sentIds, change, leave } = setRows(async (ids) => {
      if (failures-- > 0) throw new Error('The storage is away.')
      return ids.map(summaryOf)
    })
    change('a')
    await until('the row', async () => sentIds.length === 1)
    expect(sentIds).toEqual(['a'])
    leave()
  })

  test('are not sent to a reader that has left', async () => {
    const read = Promise.withResolvers<void>()
    const reading = Promise.withResolvers<void>()
    const { sentIds, change, leave } = setRows(async (ids) => {
      reading.resolve()
      await read.promise
      return ids.map(summaryOf)
    })
    change('a')
    await reading.promise
    leave()
    read.resolve()
    await new Promise(setImmediate)
    expect(sentIds).toEqual([])
  })
})
