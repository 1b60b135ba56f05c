import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Event } from '../../src/contract/events/event.ts'
import { bash, setStage } from '../support/agent.ts'
import { subscribe } from '../support/stream.ts'

test('a client creates a conversation, sends a message, follows the agent live, lists what happened and sends another', async () => {
  await using stage = await setStage({
    replies: [
      {
        when: 'hello',
        turns: [
          { text: 'I will write it.', ...bash('echo hello > greeting.txt; cat greeting.txt') },
          { text: 'greeting.txt says hello.' },
        ],
      },
      { when: 'again', turns: [{ text: 'Still here.' }] },
    ],
  })
  const { server } = stage
  const id = await stage.create({ title: 'greeting' })

  const stream = await subscribe(server.url, `/conversations/${id}/events/stream?deltas=true`)
  const posted = await server.call('POST', `/conversations/${id}/messages`, {
    message: { role: 'user', content: 'write hello' },
    run: true,
  })
  expect(posted).toMatchObject({
    status: 202,
    body: { seq: 2, event_id: expect.any(String), run_id: expect.any(String) },
  })
  await stream.until(({ event, data }) => event === 'StatusUpdate' && data.status === 'idle')
  stream.close()

  const durable = stream.frames.filter((frame) => frame.data.seq !== undefined)
  expect(durable.map((frame) => frame.event)).toEqual([
    'UserMessage',
    'StatusUpdate',
    'AssistantMessage',
    'ToolUse',
    'ToolResult',
    'AssistantMessage',
    'Result',
    'StatusUpdate',
  ])
  expect(durable.map((frame) => Number(frame.id))).toEqual([2, 3, 4, 5, 6, 7, 8, 9])
  const streamed = stream.frames
    .filter((frame) => frame.event === 'AssistantDelta')
    .map((frame) => frame.data.text_delta ?? '')
  expect(streamed.join('')).toBe('I will write it.greeting.txt says hello.')

  const listed = await stage.events(id)
  expect(listed.slice(1)).toEqual(durable.map((frame) => frame.data))
  for (const event of listed) expect(Event.safeParse(event).error).toBeUndefined()
  expect(listed.find((event) => event.type === 'ToolResult')).toMatchObject({
    is_error: false,
    output: { stdout: 'hello\n', exit_code: 0 },
  })

  const { body: conversation } = await server.call('GET', `/conversations/${id}`)
  expect(conversation).toMatchObject({
    title: 'greeting',
    status: 'idle',
    last_seq: 9,
    state: { event_count: 9, agent_finished: false },
  })
  expect(await readFile(join(conversation.workdir, 'greeting.txt'), 'utf8')).toBe('hello\n')

  const second = await stage.say(id, 'are you there again?')
  expect(second.find((event) => event.type === 'Result')).toMatchObject({
    final_text: 'Still here.',
    stop_reason: 'completed',
    steps: 1,
  })
})

test('each request to the model extends the one before it byte for byte', async () => {
  await using stage = await setStage({
    replies: [
      { when: 'more', turns: [{ text: 'No more.' }] },
      { turns: [bash('echo 1'), bash('echo 2 "\\" ü"'), { text: 'Two.' }] },
    ],
  })
  const id = await stage.create()
  await stage.say(id, 'count')
  await stage.say(id, 'more')

  const texts = stage.model.requests.map((request) => request.text)
  expect(texts).toHaveLength(4)
  for (const [at, text] of texts.entries()) {
    if (at === 0) continue
    const before = texts[at - 1]!
    expect(commonPrefix(before, text)).toBeGreaterThanOrEqual(endOfMessages(before))
    expect(JSON.stringify(stage.model.requests[at]!.body['tools'])).toBe(
      JSON.stringify(stage.model.requests[at - 1]!.body['tools']),
    )
  }
})

/** Where the last message ends: up to there the next request must be the same. */
function endOfMessages(text: string): number {
  const { messages } = JSON.parse(text) as { messages: unknown[] }
  const last = JSON.stringify(messages.at(-1))
  return text.indexOf(last) + last.length
}

function commonPrefix(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}
