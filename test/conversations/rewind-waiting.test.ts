/** Rewinds while somebody is asked: what waits is closed, and a late answer has no effect. */
import { rmSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { AnswerRequest, OpenRequest } from '../../src/contract/request.ts'
import type { Conversation } from '../../src/conversations/conversation.ts'
import type { Script } from '../../src/llm/scripted/script.ts'
import { call, eventsOf, only, realShells, say, setBench, tool, until, userText } from './fixtures.ts'

const GONE = 'what was rewound'
const CLIENT_TOOL = { name: 'look_up', description: 'Looks up.', input_schema: { type: 'object' } }

let ran = 0
const work = tool('Work', () => ({ output: String(++ran) }))

const ALLOW = (request: OpenRequest): AnswerRequest => {
  if (request.kind !== 'permission') throw new Error(`a ${request.kind} waits`)
  const decisions = request.payload.tool_uses.map(({ tool_use_id, input_hash }) => ({
    tool_use_id,
    input_hash,
    behavior: 'allow' as const,
    remember: false,
  }))
  return { kind: 'permission', decisions }
}

/** A client may have begun its tool: the call ends as interrupted. */
const WAITS: Readonly<
  Record<string, readonly [name: string, reason: string, answer: (request: OpenRequest) => AnswerRequest]>
> = {
  'an approval': ['Work', 'rewound', ALLOW],
  'a client tool': ['look_up', 'interrupted', () => ({ kind: 'client_tool', output: 'late', is_error: false })],
}

const rewind = (conversation: Conversation, to_seq: number) =>
  conversation.rewind({ to_seq, last_seq: conversation.log.head }, {})

test.each(Object.entries(WAITS))(
  'a rewind closes %s that waits, and a late answer runs nothing',
  async (_, [name, why, late]) => {
    ran = 0
    const script: Script = ({ text }) => (text.includes(GONE) ? { calls: [call(name)] } : { text: 'done' })
    await using bench = await setBench({ script, tools: [work], deps: { createShells: realShells() } })
    const conversation = await bench.converse({
      permission_mode: 'default',
      client_tools: [CLIENT_TOOL],
      permission_rules: { allow: ['look_up'] },
    })
    const end = conversation.log.head
    await conversation.post(userText(GONE, true))
    await until(conversation, 'RequestOpened')
    const [waiting] = conversation.requests.list()
    const { closed } = await rewind(conversation, end)
    expect(closed.requests).toEqual([waiting!.request_id])
    expect(conversation.requests.list()).toEqual([])
    const events = await eventsOf(conversation)
    expect(only(events, 'RequestClosed').map(({ reason }) => reason)).toEqual([why])
    await expect(conversation.requests.answer(waiting!.request_id, late(waiting!))).rejects.toMatchObject({
      code: expect.stringMatching(/^request_(closed|not_found)$/),
    })
    expect(await say(conversation, 'now')).toMatchObject({ stop_reason: 'completed', final_text: 'done' })
    expect(ran).toBe(0)
    expect(JSON.stringify(bench.model.requests.at(-1)?.body)).not.toMatch(/what was rewound|late/)
    await bench.restart({ kill: true })
    const again = await bench.manager.open(conversation.id)
    expect([again.state.status, again.requests.list()]).toEqual(['idle', []])
  },
)

test.each([true, false])('a rewind to files that cannot be read ends nothing (force: %s)', async (force) => {
  ran = 0
  const script: Script = ({ text }) => (text.includes(GONE) && ran === 0 ? { calls: [call('Work')] } : { text: 'done' })
  await using bench = await setBench({ script, tools: [work], deps: { createShells: realShells() } })
  const conversation = await bench.converse({ permission_mode: 'default', file_checkpointing: true })
  await conversation.files.snapshots.take(conversation.log.head)
  const end = conversation.log.head
  await conversation.post(userText(GONE, true))
  await until(conversation, 'RequestOpened')
  rmSync(`${conversation.files.snapshots.git.directory}/objects`, { recursive: true })
  const request = { to_seq: end, last_seq: conversation.log.head, files: true, force }
  await expect(conversation.rewind(request, {})).rejects.toThrow()
  const [waiting] = conversation.requests.list()
  await conversation.requests.answer(waiting!.request_id, ALLOW(waiting!))
  await until(conversation, 'Result')
  expect(ran).toBe(1)
})
