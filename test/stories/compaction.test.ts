/** Long conversations, through HTTP only: the model behind them refuses every request that a strict endpoint would. */
import { describe, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { bash, setStage } from '../support/agent.ts'
import { asksForSummary, faultsIn, userTexts } from '../support/chat-requests.ts'
import { PATIENCE_S } from '../support/patience.ts'

const WINDOW = 8000

const tokensIn = ({ text }: ScriptedQuestion) => Math.ceil(text.length / 4)

/** Answers like a model with a small window, and works for so many turns. */
function createWorker(turns: number) {
  let done = 0
  const seen = { faults: [] as string[], tooLong: 0, summaries: 0, requests: [] as string[] }
  const script = async (question: ScriptedQuestion): Promise<ScriptedTurn> => {
    seen.faults.push(...faultsIn(question.messages))
    if (tokensIn(question) > WINDOW) {
      seen.tooLong++
      return { status: 400, error: { code: 'context_length_exceeded', message: 'maximum context length is 8000' } }
    }
    if (asksForSummary(question)) return { text: `Summary ${++seen.summaries}: ${done} turns are done.` }
    seen.requests.push(question.text)
    done++
    if (done % 100 === 0 || done >= turns) return { text: `Done with turn ${done}.` }
    if (done === 20) return { calls: [{ name: 'TaskTracker', arguments: { command: 'plan', task_list: [TASK] } }] }
    return bash(`printf 'turn ${done} '; head -c ${200 + (done % 7) * 400} /dev/zero | tr '\\0' x`)
  }
  return { script, seen }
}

const TASK = { id: '1', title: 'Count all turns', status: 'in_progress', notes: '' }

/** How often a request did not extend the one before it. */
function breaksIn(requests: readonly string[]): number {
  return requests.filter((text, at) => at > 0 && !text.startsWith(requests[at - 1]!.slice(0, -2))).length
}

const llm = (baseUrl: string) => ({
  llm_config: { model: 'scripted', base_url: baseUrl, api_key: 'scripted-model-key', context_window: WINDOW },
  tools: ['Bash', 'TaskTracker'],
})

describe('a conversation of 300 turns with a window of 8000 tokens', () => {
  test('never exceeds the window, keeps the first message and the tasks, and changes the prefix only at compactions', async () => {
    const { script, seen } = createWorker(300)
    await using stage = await setStage(script)
    const id = await stage.create(llm(stage.model.baseUrl))
    for (const text of ['Count the turns of this job.', 'Go on.', 'And once more.']) await stage.say(id, text)

    expect(seen.faults).toEqual([])
    expect(seen.tooLong).toBe(0)
    const condensations = await stage.events(id, 'types=Condensation')
    expect(seen.summaries).toBeGreaterThan(3)
    expect(condensations.filter(({ summary }) => summary !== undefined)).toHaveLength(seen.summaries)
    expect(breaksIn(seen.requests)).toBe(condensations.length)
    for (const { tokens_before, tokens_after } of condensations) expect(tokens_after).toBeLessThan(tokens_before)

    const { messages } = JSON.parse(seen.requests.at(-1)!)
    expect(userTexts(messages)).toContain('Count the turns of this job.')
    expect(userTexts(messages)).toContain('And once more.')
    expect(userTexts(messages)).toMatch(/Summary \d+: \d+ turns are done/)
    expect(userTexts(messages)).toContain('Count all turns')

    // The log still has everything, and the summaries are paid for.
    const events = [...(await stage.events(id)), ...(await stage.events(id, 'after_seq=1000'))]
    expect(events.filter(({ type }) => type === 'ToolResult')).toHaveLength(297)
    const { body } = await stage.server.call('GET', `/conversations/${id}`)
    const spent = events.flatMap(({ usage, type }) => (type !== 'Result' && usage ? [usage] : []))
    const inputs = spent.reduce((sum, { input_tokens }) => sum + input_tokens, 0)
    expect(body.usage.scripted.input_tokens).toBe(inputs)
  })
})

/** Makes one long turn per message; the summaries are written as the test says. */
function createTalker(summary: (count: number) => ScriptedTurn) {
  const seen = { faults: [] as string[], summaries: 0 }
  const script = (question: ScriptedQuestion): ScriptedTurn => {
    seen.faults.push(...faultsIn(question.messages))
    return asksForSummary(question) ? summary(++seen.summaries) : { text: 'word '.repeat(2400) }
  }
  return { script, seen }
}

test('a run that is killed in the middle of a compaction starts it again, and stores it once', async () => {
  const { script, seen } = createTalker((count) =>
    count === 1 ? { text: 'late', delay_ms: 100_000 } : { text: 'Whole.' },
  )
  await using stage = await setStage(script)
  const { server, model } = stage
  const id = await stage.create(llm(model.baseUrl))
  for (const text of ['The first.', 'The second.']) await stage.say(id, text)
  await server.call('POST', `/conversations/${id}/messages`, {
    message: { role: 'user', content: 'The third.' },
    run: true,
  })
  await expect.poll(() => seen.summaries).toBe(1)
  await server.restart('SIGKILL')
  expect(await stage.events(id, 'types=Condensation')).toEqual([])

  const { body } = await server.call('POST', `/conversations/${id}/run`, { wait: true, timeout: PATIENCE_S })
  expect(body.result.stop_reason).toBe('completed')
  expect(await stage.events(id, 'types=Condensation')).toMatchObject([{ trigger: 'threshold', summary: 'Whole.' }])
  expect(seen).toMatchObject({ faults: [], summaries: 2 })
})

test('a pause in the middle of a compaction stores nothing of it', async () => {
  const { script, seen } = createTalker(() => ({ text: 'late', delay_ms: 100_000 }))
  await using stage = await setStage(script)
  const id = await stage.create(llm(stage.model.baseUrl))
  for (const text of ['The first.', 'The second.']) await stage.say(id, text)
  const said = { message: { role: 'user', content: 'The third.' }, run: true }
  await stage.server.call('POST', `/conversations/${id}/messages`, said)
  await expect.poll(() => seen.summaries).toBe(1)
  expect((await stage.server.call('POST', `/conversations/${id}/pause`)).body).toEqual({ status: 'paused' })
  expect(await stage.events(id, 'types=Condensation')).toEqual([])
})

test('a client compacts a conversation at rest, and its fork has the summary', async () => {
  const { script, seen } = createTalker(() => ({ text: 'What the client wanted.' }))
  await using stage = await setStage(script)
  const { server, model } = stage
  const id = await stage.create({ ...llm(model.baseUrl), secrets: { TOKEN: 'a-secret-value-4711' } })
  const compact = (body?: object) => server.call('POST', `/conversations/${id}/compact`, body)
  expect(await compact()).toMatchObject({ status: 409, body: { error: 'nothing_to_compact' } })
  for (const text of ['The first.', 'The second.']) await stage.say(id, text)

  const { status, body } = await compact({ instructions: 'Name a-secret-value-4711 and the files.' })
  expect(status).toBe(200)
  expect(body.condensation).toMatchObject({ trigger: 'request', summary: 'What the client wanted.' })
  expect(body.condensation.instructions).toBe('Name <secret:TOKEN> and the files.')
  expect(await stage.events(id, 'types=Condensation')).toEqual([body.condensation])

  const fork = (await server.call('POST', `/conversations/${id}/fork`, {})).body.id
  await stage.say(fork, 'In the fork.')
  expect(userTexts(model.requests.at(-1)!.messages)).toContain('What the client wanted.')
  expect(seen.faults).toEqual([])
})

test('a client cannot compact a conversation that runs or is being compacted', async () => {
  const { script, seen } = createTalker(() => ({ text: 'late', delay_ms: 100_000 }))
  await using stage = await setStage(script)
  const { server } = stage
  const id = await stage.create(llm(stage.model.baseUrl))
  for (const text of ['The first.', 'The second.']) await stage.say(id, text)
  const first = server.call('POST', `/conversations/${id}/compact`)
  await expect.poll(() => seen.summaries).toBe(1)
  expect(await server.call('POST', `/conversations/${id}/compact`)).toMatchObject({
    status: 409,
    body: { error: 'conversation_running' },
  })
  // A deletion ends it.
  expect((await server.call('DELETE', `/conversations/${id}`)).status).toBe(204)
  expect((await first).status).toBe(410)
})

describe('a PreCompact hook', () => {
  const converse = async (command: string) => {
    const stage = await setStage((question) => ({ text: asksForSummary(question) ? 'Summary.' : 'Yes. '.repeat(400) }))
    const hooks = { PreCompact: [{ matcher: 'manual', hooks: [{ type: 'command', command }] }] }
    const id = await stage.create({ ...llm(stage.model.baseUrl), hooks })
    for (const text of ['One.', 'Two.', 'Three.', 'Four.']) await stage.say(id, text)
    return { stage, id, compact: () => stage.server.call('POST', `/conversations/${id}/compact`, {}) }
  }

  test('that blocks is the answer to the client, and nothing is forgotten', async () => {
    const { stage, id, compact } = await converse('echo "Not now." >&2; exit 2')
    await using _ = stage
    expect(await compact()).toMatchObject({
      status: 403,
      body: { error: 'blocked_by_hook', message: expect.stringContaining('Not now.') },
    })
    expect(await stage.events(id, 'types=Condensation')).toEqual([])
    expect(await stage.events(id, 'types=HookEvent')).toMatchObject([{ hook_point: 'PreCompact', action: 'block' }])
  })

  test('reads why it is called, and adds instructions for the summary', async () => {
    const answer = `{"hookSpecificOutput":{"hookEventName":"PreCompact","additionalContext":"Keep all names."}}`
    const { stage, id, compact } = await converse(`grep -q '"trigger":"manual"' && echo '${answer}'`)
    await using _ = stage
    expect((await compact()).status).toBe(200)
    expect(await stage.events(id, 'types=Condensation')).toMatchObject([{ instructions: 'Keep all names.' }])
    expect(JSON.stringify(stage.model.requests)).toContain('Keep all names.')
  })
})
