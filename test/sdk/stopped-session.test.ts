/** Sessions that continue without a prompt: what waits is asked again, and a run that was cut off continues. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { QueryEvent, QueryOptions, QueryOutcome } from '../../src/index.ts'
import { query, run, sessions, tool } from '../../src/index.ts'
import { continueStopped, readStopped } from '../../src/sdk/session/stopped-session.ts'
import { resultsIn, setServedStage } from './stage.ts'
import { openedIn } from '../support/answering.ts'

const stage = await setServedStage()
const {
  options,
  server,
  options: { persistDir },
} = stage

const allow = () => ({ behavior: 'allow' as const })
const bash = (command: string) => `call Bash ${JSON.stringify({ command })}`
const QUESTION = {
  question: 'Which one?',
  header: 'Choice',
  options: ['A', 'B'].map((label) => ({ label, description: label })),
  multiSelect: false,
}

/** More than the model says before it is stopped. */
const SLOW_ONCE = `slow once${' and then at once'.repeat(100)}`

/** A session whose only call waits. */
const wait = (prompt = bash('mkdir made')) =>
  run({ prompt, options: { ...options, permissionMode: 'default', tools: ['Bash', 'AskUserQuestion', 'Task'] } })

const logOf = (id: string) => Array.fromAsync(sessions({ persistDir }).read(id))
const requests = () => stage.model.requests.length
const idsIn = ({ events }: Pick<QueryOutcome, 'events'>) =>
  openedIn(events, 'permission').flatMap((event) => event.tool_use_ids)

describe('a session that waits', () => {
  test('asks again, and the answer runs the same call', async () => {
    const first = await wait()
    const before = requests()
    const outcome = await run({ options: { resume: first.sessionId, persistDir, canUseTool: allow } })
    expect(outcome).toMatchObject({ stopReason: 'completed', finalText: 'It said: [no output]' })
    expect(idsIn(outcome)).toEqual(idsIn(first))
    expect(requests() - before, 'only for the result').toBe(1)
    const log = await logOf(first.sessionId)
    expect(openedIn(log, 'permission')).toHaveLength(1)
    expect(log.filter(({ type }) => type === 'ToolResult')).toMatchObject([{ is_error: false }])
  })

  test('asks its question again', async () => {
    const first = await wait(`call AskUserQuestion ${JSON.stringify({ questions: [QUESTION] })}`)
    expect(first.stopReason).toBe('waiting_for_input')
    const asking = sessions({ persistDir }).resume(first.sessionId, undefined, {
      answerQuestions: () => ({ [QUESTION.question]: 'B' }),
    })
    expect(resultsIn(await Array.fromAsync(asking))).toMatchObject([{ final_text: expect.stringContaining('B') }])
  })

  test('still waits if nobody answers here, also after a pause', async () => {
    const { sessionId, events } = await wait()
    expect(await run({ options: { resume: sessionId, persistDir } })).toMatchObject({
      stopReason: 'waiting_for_confirmation',
      events: [{ type: 'RequestOpened', kind: 'permission' }],
    })
    expect(await logOf(sessionId)).toHaveLength(events.at(-1)!.seq)
    await server.client.conversation(sessionId).pause()
    const outcome = await run({ options: { resume: sessionId, persistDir, canUseTool: allow } })
    expect(outcome.finalText).toBe('It said: [no output]')
  })

  test('asks about the call of a subagent', async () => {
    const prompt = `call Task ${JSON.stringify({ description: 'x', prompt: bash('mkdir b'), subagent_type: 'general-purpose' })}`
    const first = await wait(prompt)
    expect(first.stopReason).toBe('waiting_for_confirmation')
    const outcome = await run({ options: { resume: first.sessionId, persistDir, canUseTool: allow } })
    expect(outcome.finalText).toContain('It said: [no output]')
    expect(idsIn(outcome)).toEqual(idsIn(first))
  })

  test('still waits while a copy, which begins before the call, continues', async () => {
    const first = await wait()
    const copy = await run({ options: { fork: first.sessionId, persistDir } })
    expect([copy.stopReason, copy.sessionId === first.sessionId]).toEqual(['completed', false])
    expect((await sessions({ persistDir }).get(first.sessionId)).status).toBe('waiting_for_confirmation')
  })

  test('asks while the prompt has no message yet; one that is there replaces the answer', async () => {
    const first = await wait()
    const asked = Promise.withResolvers<void>()
    async function* later() {
      await asked.promise
      yield 'and this'
    }
    const resumed = { resume: first.sessionId, persistDir, canUseTool: allow }
    const events: QueryEvent[] = []
    for await (const event of query({ prompt: later(), options: resumed })) {
      events.push(event)
      if (event.type === 'ToolResult') asked.resolve()
    }
    expect(events.find(({ type }) => type === 'ToolResult')).toMatchObject({ is_error: false })
    expect(events.some(({ type }) => type === 'UserMessage')).toBe(true)
    const second = await wait()
    async function* atOnce() {
      yield 'forget it'
    }
    const refuse = () => expect.unreachable('it is superseded')
    const outcome = await run({
      prompt: atOnce(),
      options: { resume: second.sessionId, persistDir, canUseTool: refuse },
    })
    expect(outcome.finalText).toBe('forget it')
    expect(idsIn(outcome)).toEqual([])
  })

  test('is answered once by two queries, or by another client, and both reach the end', async () => {
    const first = await wait()
    const resumed = () => run({ options: { resume: first.sessionId, persistDir, canUseTool: allow } })
    const both = await Promise.all([resumed(), resumed()])
    expect(both.map(({ finalText }) => finalText)).toEqual(Array(2).fill('It said: [no output]'))
    const second = await wait()
    const { promise: never } = Promise.withResolvers<never>()
    const asking = query({ options: { resume: second.sessionId, persistDir, canUseTool: () => never } })
    const events: QueryEvent[] = []
    for await (const event of asking) {
      events.push(event)
      if (event.type === 'RequestOpened' && event.kind === 'permission')
        await server.client.conversation(second.sessionId).requests.deny(event, { message: 'no' })
    }
    expect(resultsIn(events)).toMatchObject([{ stop_reason: 'completed' }])
  })

  test('ends with the answer to a message that another client writes instead of an answer', async () => {
    const { promise: never } = Promise.withResolvers<never>()
    const asking = query({
      prompt: `call AskUserQuestion ${JSON.stringify({ questions: [QUESTION] })}`,
      options: { ...options, tools: ['AskUserQuestion'], answerQuestions: () => never },
    })
    const events: QueryEvent[] = []
    for await (const event of asking) {
      events.push(event)
      if (event.type === 'StatusUpdate' && event.status === 'waiting_for_input')
        await server.client.conversation(asking.sessionId!).send('forget it')
    }
    expect(resultsIn(events)).toMatchObject([{ stop_reason: 'superseded' }, { final_text: 'forget it' }])
  })

  test('has the call of a tool executed that its program has left open', async () => {
    const begun = Promise.withResolvers<void>()
    const look = (handler: () => string | Promise<string>) => tool('look', 'Looks.', z.object({}), handler)
    const at: QueryOptions = { server: { baseUrl: server.url, apiKey: server.apiKey } }
    const hanging = look(() => {
      begun.resolve()
      return new Promise(() => {})
    })
    const { model, baseUrl, apiKey } = options
    const left = query({ prompt: 'call look', options: { ...at, model, baseUrl, apiKey, tools: [hanging] } })
    const reading = Array.fromAsync(left)
    await begun.promise
    const outcome = await run({ options: { ...at, resume: left.sessionId!, tools: [look(() => 'seen')] } })
    expect(outcome.finalText).toBe('It said: seen')
    await reading
  })
})

describe('a session', () => {
  test('that was cut off continues its run', async () => {
    const asking = query({ prompt: SLOW_ONCE, options })
    for await (const event of asking) if (event.type === 'UserMessage') break
    const { finalText, stopReason } = await run({ options: { resume: asking.sessionId!, persistDir } })
    expect([stopReason, finalText]).toEqual(['completed', SLOW_ONCE])
  })

  test('that several programs continue has one run, also if one of them comes after its end', async () => {
    const asking = query({ prompt: `${SLOW_ONCE} for two`, options })
    for await (const event of asking) if (event.type === 'UserMessage') break
    const conversation = server.client.conversation(asking.sessionId!)
    const seen = await readStopped(conversation, await conversation.get())
    const runId = await continueStopped(conversation, seen)
    await expect.poll(async () => (await conversation.get()).status).toBe('idle')
    const before = requests()
    expect(await continueStopped(conversation, seen)).toBe(runId)
    expect(requests()).toBe(before)
    expect(await conversation.run({ after_seq: (await conversation.get()).last_seq })).toBeDefined()
  })

  test('with a message that no run has read continues with it', async () => {
    const { sessionId } = await run({ prompt: 'hello', options })
    await server.client.conversation(sessionId).postMessage({ message: { role: 'user', content: 'unread' } }, {})
    expect((await run({ options: { continue: true, persistDir } })).finalText).toBe('unread')
  })

  test('that was taken back to a message continues with it', async () => {
    const { sessionId, events } = await run({ prompt: 'hello', options })
    const conversation = server.client.conversation(sessionId)
    const { seq } = events.find(({ type }) => type === 'UserMessage')!
    const { last_seq } = await conversation.get()
    await conversation.rewind({ to_seq: seq, last_seq })
    const { stopReason, finalText } = await run({ options: { resume: sessionId, persistDir } })
    expect([stopReason, finalText]).toEqual(['completed', expect.stringContaining('taken the conversation back')])
  })

  test('in which nothing is left to do is refused, and stays as it is', async () => {
    const { sessionId: resume } = await run({ prompt: 'hello', options })
    const before = await logOf(resume)
    const changed = run({ options: { resume, persistDir, permissionMode: 'plan' } })
    await expect(changed).rejects.toThrow('There is nothing to continue in session')
    async function* none(): AsyncGenerator<string> {}
    await expect(run({ prompt: none(), options: { resume, persistDir } })).rejects.toThrow('nothing to continue')
    await expect(run({ options: { fork: resume, persistDir } })).rejects.toThrow('nothing to continue')
    expect(await logOf(resume)).toEqual(before)
    // @ts-expect-error -- without the name of a session it needs a prompt
    await expect(run({ options: { persistDir } })).rejects.toThrow('There is no prompt')
  })
})
