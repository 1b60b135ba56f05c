/** /metrics: what a conversation's work leaves there. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { inOrder } from '../../src/llm/scripted/script.ts'
import { call, say, tool } from '../conversations/fixtures.ts'
import { subscribe } from '../support/stream.ts'
import { KEY, expectProblem, setHttp } from './fixtures.ts'
import type { HttpBench } from './fixtures.ts'

/** Metric with its labels -> value. */
async function scrape(http: HttpBench): Promise<Map<string, number>> {
  const { status, text } = await http.call('GET', '/metrics')
  expect(status, text).toBe(200)
  const lines = text.split('\n').filter((line) => line && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

test('needs the key', async () => {
  await using http = await setHttp()
  expectProblem(await http.call('GET', '/metrics', undefined, { authorization: '' }), 401, 'unauthorized')
})

test('counts runs, steps, tokens, tool calls and appends, and contains no conversation id', async () => {
  await using http = await setHttp({
    tools: [
      tool('Bash', () => ({ output: 'fine' })),
      tool('Think', () => ({ output: '', error: { type: 'failed', message: 'no' } })),
    ],
    script: inOrder([
      { calls: [call('Bash')] },
      {
        calls: [call('Think'), call('Bash; a name that no tool has')],
        usage: { prompt_tokens: 10, completion_tokens: 3 },
      },
      { text: 'Done.', usage: { prompt_tokens: 5, completion_tokens: 1 } },
    ]),
  })
  const id = await http.create()
  await say(await http.bench.manager.open(id))
  const metrics = await scrape(http)
  const of = (name: string) => metrics.get(`agent_server_${name}`)
  expect(of('runs_started_total')).toBe(1)
  expect(of('runs_ended_total{stop_reason="completed"}')).toBe(1)
  expect(of('steps_total')).toBe(3)
  expect(of('tool_calls_total{tool="Bash",outcome="ok"}')).toBe(1)
  expect(of('tool_calls_total{tool="Think",outcome="failed"}')).toBe(1)
  expect(of('tool_calls_total{tool="unknown",outcome="unknown_tool"}')).toBe(1)
  expect(of('llm_tokens_total{model="scripted",kind="output"}')).toBeGreaterThanOrEqual(4)
  expect(of('llm_answer_seconds_count{model="scripted",outcome="answered"}')).toBe(3)
  expect(of('llm_first_delta_seconds_count{model="scripted"}')).toBe(3)
  expect(of('step_overhead_seconds_count')).toBe(2)
  expect(of('append_seconds_count')).toBeGreaterThanOrEqual(7)
  expect([...metrics.keys()].join('\n')).not.toContain(id)
})

test('the overhead of a step excludes its tools, and all waits of a run', async () => {
  // Only the tool takes time.
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const slow = tool('Bash', async () => {
    vi.advanceTimersByTime(300)
    return { output: 'fine' }
  })
  await using http = await setHttp({
    tools: [slow],
    script: inOrder([{ calls: [call('Bash')] }, { text: 'One.' }, { text: 'Two.' }]),
  })
  const conversation = await http.bench.manager.open(await http.create())
  await say(conversation)
  await say(conversation)
  const metrics = await scrape(http)
  expect(metrics.get('agent_server_step_overhead_seconds_count'), 'none between two runs').toBe(1)
  expect(metrics.get('agent_server_step_overhead_seconds_sum')).toBe(0)
})

test('a failing model is counted by the type of its error', async () => {
  await using http = await setHttp({ script: () => ({ status: 401, error: { message: 'no such key' } }) })
  await say(await http.bench.manager.open(await http.create()))
  const metrics = await scrape(http)
  expect(metrics.get('agent_server_llm_answer_seconds_count{model="scripted",outcome="auth"}')).toBe(1)
  expect(metrics.get('agent_server_runs_ended_total{stop_reason="error"}')).toBe(1)
})

test('counts answers and refused keys, and open streams', async () => {
  await using http = await setHttp()
  const id = await http.create()
  await http.call('GET', '/info', undefined, { authorization: 'Bearer no-such-key' })
  const url = await http.listen()
  const stream = await subscribe(url, `/conversations/${id}/events/stream`, { authorization: `Bearer ${KEY}` })
  const metrics = await scrape(http)
  expect(metrics.get('agent_server_refused_keys_total')).toBe(1)
  expect(metrics.get('agent_server_http_requests_total{status="2xx"}')).toBe(1)
  expect(metrics.get('agent_server_http_requests_total{status="4xx"}')).toBe(1)
  expect(metrics.get('agent_server_streams{kind="sse"}')).toBe(1)
  stream.close()
  await expect.poll(async () => (await scrape(http)).get('agent_server_streams{kind="sse"}')).toBe(0)
})
