import { expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { longEnough } from '../support/long-enough.ts'
import { subscribe } from '../support/stream.ts'

test('a client that loses its stream again and again during a run sees every event once', async () => {
  const steps = 30
  await using stage = await setStage({
    replies: [{ turns: [...Array.from({ length: steps }, (_, i) => bash(`echo ${i}`)), { text: 'Counted.' }] }],
  })
  const { server } = stage
  const id = await stage.create()
  const path = `/conversations/${id}/events/stream`
  const seen: { id: string; data: { seq: number } }[] = []

  let stream = await subscribe(server.url, `${path}?after_seq=0`)
  await server.call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content: 'count' }, run: true })
  for (let connections = 1; ; connections++) {
    const wanted = 5 * connections
    const last = await stream.until(({ event, data }) => event === 'Result' || data.seq >= wanted)
    stream.close()
    const durable = stream.frames.filter((frame) => frame.id)
    seen.push(...durable)
    if (last.event === 'Result' || durable.some((frame) => frame.event === 'Result')) break
    stream = await subscribe(server.url, path, { 'last-event-id': durable.at(-1)!.id })
  }

  const listed = await stage.events(id)
  expect(seen.map((frame) => frame.data)).toEqual(listed.slice(0, seen.length))
  expect(seen.map((frame) => frame.data.seq)).toEqual(seen.map((_, i) => i + 1))
  expect(listed.filter((event) => event.type === 'ToolResult')).toHaveLength(steps)
})

test('a stream from the start shows earlier events and continues live; a cursor beyond the end is refused', async () => {
  await using stage = await setStage({ replies: [{ turns: [{ text: 'Hello.' }] }] })
  const { server } = stage
  const id = await stage.create()
  await stage.say(id, 'hi')

  const stream = await subscribe(server.url, `/conversations/${id}/events/stream?after_seq=0&types=UserMessage,Result`)
  await stage.say(id, 'hi')
  await stream.until(({ data }) => data.type === 'Result' && data.seq > 6)
  stream.close()
  expect(stream.frames.map((frame) => frame.event)).toEqual(['UserMessage', 'Result', 'UserMessage', 'Result'])

  const refused = await server.call('GET', `/conversations/${id}/events/stream?after_seq=999`, undefined, {
    accept: 'text/event-stream',
  })
  expect(refused).toMatchObject({ status: 409, body: { error: 'cursor_ahead' } })
  const garbled = await server.call('GET', `/conversations/${id}/events/stream`, undefined, {
    'last-event-id': 'seven',
  })
  expect(garbled).toMatchObject({ status: 400, body: { error: 'invalid_cursor' } })
})

test('a stream says why it ends: the conversation was deleted, or the server stops', async () => {
  await using stage = await setStage({ replies: [{ turns: [{ text: 'Hello.' }] }] })
  const { server } = stage
  const [first, second] = [await stage.create(), await stage.create()]
  const ofDeleted = await subscribe(server.url, `/conversations/${first}/events/stream`)
  const ofStopped = await subscribe(server.url, `/conversations/${second}/events/stream`)

  await server.call('DELETE', `/conversations/${first}`)
  await ofDeleted.ended
  expect(ofDeleted.frames.at(-1)?.event).toBe('deleted')

  expect(await server.stop('SIGTERM')).toBe(0)
  await ofStopped.ended
  expect(ofStopped.frames.at(-1)?.event).toBe('server_closing')
})

test('a subscriber that joins in the middle of a message gets the text so far, then the rest', async () => {
  const words = Array.from({ length: 40 }, (_, i) => `word${i}`)
  let chunk_delay_ms = 0
  await using stage = await setStage(() => ({ text: words.join(' '), chunk_delay_ms }))
  const { server } = stage
  /** Undefined if the message was complete before the second one had joined. */
  const join = async () => {
    const id = await stage.create()
    const path = `/conversations/${id}/events/stream?deltas=true`
    const early = await subscribe(server.url, path)
    await server.call('POST', `/conversations/${id}/messages`, {
      message: { role: 'user', content: 'talk' },
      run: true,
    })
    await early.until(({ event, data }) => event === 'AssistantDelta' && data.offset > 50)
    const late = await subscribe(server.url, path)
    await early.until(({ event }) => event === 'Result')
    await server.call('POST', `/conversations/${id}/events`, { name: 'over' })
    await late.until(({ event }) => event === 'ClientEvent')
    for (const stream of [early, late]) stream.close()
    return late.frames.some(({ event }) => event === 'AssistantMessage') && { early, late }
  }
  const { early, late } = await longEnough(1, (seconds) => {
    chunk_delay_ms = (seconds * 1000) / words.length
    return join()
  })

  const textOf = (frames: typeof late.frames) =>
    frames
      .filter((frame) => frame.event === 'AssistantDelta')
      .map((frame) => frame.data.text_delta)
      .join('')
  expect(textOf(late.frames)).toBe(words.join(' '))
  expect(late.frames.find((frame) => frame.event === 'AssistantDelta')?.data).toMatchObject({ offset: 0 })
  expect(textOf(early.frames)).toBe(words.join(' '))
})
