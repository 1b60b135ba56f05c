/** AG-UI, as its client uses it, on a real server. The client checks the form and the order of all events. */
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { EventType } from '@ag-ui/client'
import type { Interrupt, Message, RunAgentParameters } from '@ag-ui/client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import type { Ran } from '../support/ag-ui-page.ts'
import { Page } from '../support/ag-ui-page.ts'
import { setStageHere } from '../support/agent.ts'
import { ASKS } from '../support/asked-question.ts'
import { KEY } from '../support/server.ts'

const stage = await setStageHere(({ body }) => turnFor(body))
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage
const LLM = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
let failures = 0

const textIn = ({ content }: { content?: unknown }) => (typeof content === 'string' ? content : JSON.stringify(content))

/** What the scripted model does with the last message of the user, or with the result of its call. */
function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = textIn(last ?? {})
  if (last?.role === 'tool') return { text: `Read: ${said.slice(0, 300)}` }
  if (said.includes('delegate'))
    return {
      calls: [
        {
          name: 'Task',
          arguments: {
            description: 'a small task',
            prompt: said.replace('delegate', ''),
            subagent_type: 'general-purpose',
          },
        },
      ],
    }
  if (said.includes('touch'))
    return {
      text: 'Now.',
      calls: [...said.matchAll(/touch \w+/g)].map(([command]) => ({ name: 'Bash', arguments: { command } })),
    }
  if (said.includes('which one')) return ASKS
  if (said.includes('look up')) return { calls: [{ name: 'look_up', arguments: { number: '17' } }] }
  if (said.includes('flaky') && failures++ === 0)
    return { reasoning: 'Thinking wrongly.', text: 'torn off '.repeat(20), cut_after: 15, chunk_delay_ms: 60 }
  if (said.includes('never stop')) return { text: 'and so on '.repeat(300), chunk_delay_ms: 60 }
  if (said.includes('slowly')) return { reasoning: 'Hm.', text: 'one two three four five six', chunk_delay_ms: 60 }
  if (said.includes('fail')) return { status: 400, error: { message: 'no such thing' } }
  const all = messages.flatMap((message) => (message.role === 'user' ? [textIn(message)] : []))
  return { reasoning: 'A thought.', text: `I know: ${all.join(', ')}.` }
}

beforeAll(async () => {
  const tools = ['Bash', 'AskUserQuestion', 'Task']
  const { status } = await server.call('PUT', '/profiles/coder', { tools, llm_config: LLM })
  expect(status).toBe(201)
})

const LOOK_UP = { name: 'look_up', description: 'Looks up an order.', parameters: { type: 'object', properties: {} } }

const pageOf = (threadId: string) => new Page(server.url, threadId, KEY)

const typesOf = ({ events }: Ran) => events.map(({ type }) => type)

async function viewOf({ agent }: Page) {
  const { items } = (await server.call('GET', '/conversations?limit=200')).body
  return items.find(({ external_id }: { external_id?: string }) => external_id === agent.threadId)
}

const exists = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

const approve = (interrupts: readonly Interrupt[], approved = true) =>
  interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved' as const, payload: { approved } }))

/** What a page has that knows nothing but the id of the thread. */
async function freshMessages(threadId: string): Promise<Message[]> {
  const page = pageOf(threadId)
  await page.run()
  return page.agent.messages
}

test('the messages of a thread are one conversation, and a page that has none of them gets all', async () => {
  const page = pageOf('one')
  const ran = await page.say('first')
  expect(typesOf(ran)).toEqual(expect.arrayContaining(['REASONING_START', 'TEXT_MESSAGE_START', 'RUN_FINISHED']))
  expect(ran.last).toMatchObject({ outcome: { type: 'success' }, result: { stop_reason: 'completed' } })
  expect(ran.last.usage[0].totalTokens).toBeGreaterThan(0)
  await page.say('second')
  const third = await page.say('third')
  expect(typesOf(third)).not.toContain('MESSAGES_SNAPSHOT')
  expect(page.text.at(-1)).toBe('assistant: I know: first, second, third.')
  expect(await freshMessages('one')).toEqual(page.agent.messages)
  const other = pageOf('one')
  await other.say('fourth')
  expect(other.text.slice(0, -3)).toEqual(page.text)
  expect(other.text.at(-1)).toBe('assistant: I know: first, second, third, fourth.')
})

test('a call waits for the approval of each interrupt; absence approves nothing', async () => {
  const page = pageOf('approvals')
  const asked = await page.say('touch yes and touch no')
  expect(asked.interrupts).toMatchObject([{ reason: 'tool_approval' }, { reason: 'tool_approval' }])
  expect(asked.interrupts[0]!.message).toContain('touch yes')
  const { workdir } = await viewOf(page)
  const [yes, no] = asked.interrupts as [Interrupt, Interrupt]
  const part = { resume: approve([yes]), threadId: 'approvals', runId: 'r', messages: page.agent.messages }
  for (const body of [
    part,
    { ...part, resume: [], messages: [...part.messages, { id: 'x', role: 'user', content: 'go' }] },
  ])
    expect(await server.call('POST', '/ag-ui/coder', body)).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    })
  expect(await exists(join(workdir, 'yes'))).toBe(false)
  await server.restart()
  const ran = await page.run({ resume: [...approve([yes]), ...approve([no], false)] })
  expect(ran.outcome).toBe('success')
  expect([await exists(join(workdir, 'yes')), await exists(join(workdir, 'no'))]).toEqual([true, false])
  expect(typesOf(ran).filter((type) => type === EventType.TOOL_CALL_RESULT)).toHaveLength(2)
  expect(await freshMessages('approvals')).toHaveLength(page.agent.messages.length)
})

test('a question is an interrupt, and its answer continues the run', async () => {
  const page = pageOf('questions')
  const asked = await page.say('which one')
  const [interrupt] = asked.interrupts as [Interrupt]
  expect(interrupt).toMatchObject({ reason: 'question', message: expect.stringContaining('2. PostgreSQL') })
  await page.run({
    resume: [{ interruptId: interrupt.id, status: 'resolved', payload: { answers: { 0: 'PostgreSQL' } } }],
  })
  expect(page.text.at(-1)).toContain('PostgreSQL')
  const again = await page.say('which one')
  const cancelled = again.interrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' as const }))
  await page.run({ resume: cancelled })
  expect(page.text.at(-1)).toContain('has not answered')
})

test('a frontend tool ends the run, and its result comes with the next one', async () => {
  const page = pageOf('frontend')
  const parameters = { tools: [LOOK_UP] }
  const asked = await page.say('look up', parameters)
  const [toolCallId] = asked.last.outcome.pendingToolCallIds
  expect(asked.last.outcome).toEqual({ type: 'success', pendingToolCallIds: [toolCallId] })
  const body = {
    threadId: 'frontend',
    runId: 'r',
    messages: [...page.agent.messages, { id: 'n', role: 'user', content: 'go' }],
  }
  expect(await server.call('POST', '/ag-ui/coder', body)).toMatchObject({
    status: 409,
    body: { error: 'waiting_for_client' },
  })
  page.agent.addMessage({ id: 'result-1', role: 'tool', toolCallId, content: 'order 17' })
  const ran = await page.run(parameters)
  expect(page.text.at(-1)).toBe('assistant: Read: order 17')
  expect(typesOf(ran)).not.toContain('TOOL_CALL_RESULT')
  expect(page.agent.messages.filter(({ role }) => role === 'tool')).toHaveLength(1)
  const messages = await freshMessages('frontend')
  expect(messages.map(({ role }) => role)).toEqual(page.agent.messages.map(({ role }) => role))
})

test('a subagent is announced, its work attributed, and suspended while its call waits', async () => {
  const page = pageOf('subagents')
  await page.say('delegate greet')
  const asked = await page.say('delegate touch inner')
  expect(asked.interrupts).toHaveLength(1)
  const [{ subagentRunId }] = asked.interrupts as [Interrupt]
  expect(subagentRunId).toMatch(/^\d+$/)
  const suspended = asked.events.find(({ type }) => type === EventType.SUBAGENT_FINISHED)
  expect(suspended).toMatchObject({ subagentRunId, outcome: { type: 'suspended' } })
  const ran = await page.run({ resume: approve(asked.interrupts) })
  expect(ran.events.filter(({ type }) => type.startsWith('SUBAGENT'))).toMatchObject([
    { type: 'SUBAGENT_STARTED', subagentRunId },
    { type: 'SUBAGENT_FINISHED', subagentRunId },
  ])
  expect(ran.events.filter((event) => event['subagentRunId'] === subagentRunId).length).toBeGreaterThan(3)
  expect(await exists(join((await viewOf(page)).workdir, 'inner'))).toBe(true)
  expect(byId(await freshMessages('subagents'))).toEqual(byId(page.agent.messages))
})

const byId = (messages: readonly Message[]) => messages.toSorted((a, b) => a.id.localeCompare(b.id))

test('the text of a failed attempt is taken back', async () => {
  const page = pageOf('retracted')
  failures = 0
  const ran = await page.say('flaky')
  expect(typesOf(ran)).toContain('MESSAGES_SNAPSHOT')
  expect(ran.outcome).toBe('success')
  expect(page.text.join()).not.toContain('torn')
  expect(page.agent.messages.filter(({ content }) => content !== '').map(({ role }) => role)).toEqual([
    'user',
    'reasoning',
    'assistant',
  ])
})

test('a lost connection does not stop the agent; the same request follows the run that works', async () => {
  const page = pageOf('lost')
  const controller = new AbortController()
  page.agent.addMessage({ id: 'slow-1', role: 'user', content: 'slowly' })
  let pieces = 0
  await page.run({ abortController: controller } as RunAgentParameters, ({ type }) => {
    if (type === EventType.TEXT_MESSAGE_CONTENT && ++pieces === 2) page.agent.abortRun()
  })
  const other = pageOf('lost')
  const [ran] = await Promise.all([page.run(), other.run()])
  expect(ran.outcome).toBe('success')
  expect(page.text).toEqual(['user: slowly', 'reasoning: Hm.', 'assistant: one two three four five six'])
  expect(other.agent.messages).toEqual(page.agent.messages)
  const { id } = await viewOf(page)
  expect(await stage.events(id, 'types=UserMessage')).toHaveLength(1)
})

test('wherever a connection is cut, the messages are those of an uncut run', async () => {
  const messagesAfter = async (cutAfter: number) => {
    const page = pageOf(`cut-${cutAfter}`)
    page.agent.addMessage({ id: 'asked', role: 'user', content: 'slowly' })
    let seen = 0
    await page.run({}, () => {
      if (++seen === cutAfter) page.agent.abortRun()
    })
    await page.run()
    return page.text
  }
  const all = await Promise.all([1, 2, 4, 5, 7, 9, 10].map(messagesAfter))
  for (const text of all)
    expect(text).toEqual(['user: slowly', 'reasoning: Hm.', 'assistant: one two three four five six'])
})

test('a message while the agent works is 409; stop ends the run as cancelled, and the next message runs', async () => {
  const page = pageOf('stopped')
  const interfere = async () => {
    const messages = [{ id: 'other', role: 'user', content: 'and this' }]
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', accept: 'text/event-stream' }
    const body = JSON.stringify({ threadId: 'stopped', runId: 'r', messages })
    const refused = await fetch(`${server.url}/ag-ui/coder`, { method: 'POST', headers, body })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([409, '1'])
    return await server.call('POST', '/ag-ui/coder/stop', { threadId: 'stopped' })
  }
  let stopping: ReturnType<typeof interfere> | undefined
  page.agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: 'never stop' })
  const ran = await page.run({}, ({ type }) => {
    if (type === EventType.TEXT_MESSAGE_CONTENT) stopping ??= interfere()
  })
  expect(await stopping).toMatchObject({ status: 200, body: { threadId: 'stopped' } })
  expect(ran.outcome).toBe('cancelled')
  expect((await page.say('again')).outcome).toBe('success')
  const asked = await page.say('touch never')
  await server.call('POST', '/ag-ui/coder/stop', { threadId: 'stopped' })
  expect((await page.run({ resume: approve(asked.interrupts) })).outcome).toBe('cancelled')
  expect(await exists(join((await viewOf(page)).workdir, 'never'))).toBe(false)
})

test('a failed run is RUN_ERROR, and nothing follows it', async () => {
  const ran = await pageOf('failing').say('fail')
  expect(ran.last).toMatchObject({ type: 'RUN_ERROR', message: expect.stringContaining('no such thing') })
})

test('a page that is behind a rewind forgets what was taken back', async () => {
  const page = pageOf('rewound')
  await page.say('first')
  await page.say('second')
  const { id, last_seq } = await viewOf(page)
  const [, second] = await stage.events(id, 'types=UserMessage')
  const rewind = { to_seq: second.seq - 1, last_seq }
  expect(await server.call('POST', `/conversations/${id}/rewind`, rewind)).toMatchObject({ status: 200 })
  expect((await freshMessages('rewound')).map(({ content }) => content)).not.toContain('second')
  await page.say('third')
  expect(page.text.join()).not.toContain('second')
  expect(page.text.at(-1)).toContain('first')
})

test('what another protocol has begun is followed, approved elsewhere and finished here', async () => {
  const id = await stage.create({ external_id: 'crossed', profile: 'coder', permission_mode: 'default' })
  await server.call('POST', `/conversations/${id}/messages`, { message: 'touch crossed', run: true })
  await expect.poll(async () => (await server.call('GET', `/conversations/${id}/requests`)).body.items).toHaveLength(1)
  const page = pageOf('crossed')
  const seen = await page.run()
  expect(seen.interrupts).toHaveLength(1)
  const [request] = (await server.call('GET', `/conversations/${id}/requests`)).body.items
  const [{ tool_use_id, input_hash }] = request.payload.tool_uses
  const decisions = [{ tool_use_id, input_hash, behavior: 'allow' }]
  await server.call('POST', `/conversations/${id}/requests/${request.request_id}`, { kind: 'permission', decisions })
  // It was decided: the entry changes nothing, and the run is shown.
  const ran = await page.run({ resume: approve(seen.interrupts, false) })
  expect(ran.outcome).toBe('success')
  expect(typesOf(ran)).toContain('TOOL_CALL_RESULT')
  expect(byId(page.agent.messages)).toEqual(byId(await freshMessages('crossed')))
})
