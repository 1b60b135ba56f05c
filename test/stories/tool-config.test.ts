/** Limits of single tools that a conversation sets, on a real server. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Stage } from '../support/agent.ts'
import { setStage } from '../support/agent.ts'
import { longEnough } from '../support/long-enough.ts'
import { approve, requestsOf } from './requests.ts'

let stage: Stage
beforeAll(async () => {
  // Each message is the calls of the turn.
  stage = await setStage(({ body }) => {
    const last = body.messages.at(-1)
    return last?.role === 'tool' ? { text: 'Done.' } : { calls: JSON.parse(String(last?.content)) }
  })
})
afterAll(() => stage[Symbol.asyncDispose]())

async function resultsOf(id: string, ...calls: (readonly [name: string, args: object])[]) {
  const events = await stage.say(id, JSON.stringify(calls.map(([name, args]) => ({ name, arguments: args }))))
  return events.filter((event) => event.type === 'ToolResult')
}
const LONG = 'x'.repeat(50_000)

test('a command ends in time, and its output is shortened in the middle', async () => {
  const { slow, long } = await longEnough(1, async (timeout_s) => {
    const tool_config = { Bash: { timeout_s, max_output_chars: 1000 } }
    const id = await stage.create({ tools: ['Bash'], tool_config })
    const results = await resultsOf(
      id,
      ['Bash', { command: 'echo begun; sleep 600', timeout: 600 }],
      ['Bash', { command: `printf 'begin%s' {1..9000}; echo end` }],
    )
    expect(results[0]).toMatchObject({ error_type: 'timeout', output: { timed_out: true } })
    return results[0].output.stdout !== '' && !results[1].is_error && { slow: results[0], long: results[1] }
  })
  expect(slow.output.stdout).toBe('begun\n')
  expect(long).toMatchObject({ is_error: false, truncated: true })
  expect(long.output.stdout).toMatch(/^begin1begin2[^]*characters are left out: see tool_config[^]*end\n$/)
  expect(long.output.stdout.length).toBeLessThan(1100)
})

test('a change holds from the next call on, also after a restart and in a fork', async () => {
  const { call, restart } = stage.server
  const id = await stage.create({ tools: ['Read'] })
  const { workdir } = (await call('GET', `/conversations/${id}`)).body
  await writeFile(join(workdir, 'long'), `${LONG.slice(0, 1900)}\n`.repeat(20))
  const lengthIn = async (conversation: string) => {
    const [result] = await resultsOf(conversation, ['Read', { file_path: 'long' }])
    return String(result.output).length
  }
  expect(await lengthIn(id)).toBeGreaterThan(35_000)
  const tool_config = { Read: { max_output_chars: 5000 } }
  const { status, body } = await call('PUT', `/conversations/${id}/config`, { tool_config })
  expect([status, body.tool_config]).toEqual([200, tool_config])
  expect(await lengthIn(id)).toBeLessThan(5200)
  await restart('SIGKILL')
  expect(await lengthIn(id)).toBeLessThan(5200)
  const { body: fork } = await call('POST', `/conversations/${id}/fork`, {})
  expect(await lengthIn(fork.id)).toBeLessThan(5200)
  await call('PUT', `/conversations/${id}/config`, { tool_config: {} })
  expect(await lengthIn(id)).toBeGreaterThan(35_000)
})

test('a secret is replaced before the cut, which may go through it', async () => {
  const secret = 'hunter2-hunter2-hunter2'
  const id = await stage.create({
    tools: ['Read'],
    secrets: { PIN: secret },
    tool_config: { Read: { max_output_chars: 1000 } },
  })
  const { workdir } = (await stage.server.call('GET', `/conversations/${id}`)).body
  await writeFile(join(workdir, 'long'), `${secret} `.repeat(70))
  const [result] = await resultsOf(id, ['Read', { file_path: 'long' }])
  expect(result.output).toContain('<secret:PIN>')
  expect(result.output).not.toMatch(/hunter2/)
})

test('an approved search shows nothing of a file that a deny rule names, nor does a call in parallel', async () => {
  const { call } = stage.server
  const permission_rules = { deny: ['Read(secret/**)'] }
  const id = await stage.create({ tools: ['Read', 'Grep', 'Glob'], permission_mode: 'default', permission_rules })
  const { workdir } = (await call('GET', `/conversations/${id}`)).body
  await mkdir(join(workdir, 'secret'))
  await writeFile(join(workdir, 'secret/key'), 'needle of the key')
  await writeFile(join(workdir, 'open'), 'needle')
  const calls = [
    ['Read', { file_path: 'open' }],
    ['Grep', { pattern: 'needle', output_mode: 'content' }],
    ['Glob', { pattern: '**/*' }],
    ['Read', { file_path: 'secret/key' }],
    ['Read', { file_path: '/etc/hostname' }],
  ] as const
  const content = JSON.stringify(calls.map(([name, args]) => ({ name, arguments: args })))
  await call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content }, run: true })
  const statusOf = async () => (await call('GET', `/conversations/${id}`)).body.status
  await expect.poll(statusOf).toBe('waiting_for_confirmation')
  expect(await stage.events(id, 'types=ToolResult'), 'no call of the turn begins before the decision').toEqual([])
  const [request] = await requestsOf(call, id, 'permission')
  expect(request.payload.tool_uses.map((use: { name: string }) => use.name)).toEqual(['Grep', 'Glob', 'Read'])
  await approve(call, id, request.request_id)
  await expect.poll(statusOf).toBe('idle')
  const ids = (await stage.events(id, 'types=ToolUse')).map((use) => use.tool_use_id)
  const found = await stage.events(id, 'types=ToolResult')
  const results = ids.map((callId) => found.find((result) => result.tool_use_id === callId))
  expect(results.map(({ error_type }) => error_type)).toEqual([undefined, undefined, undefined, 'denied', undefined])
  expect([results[1].output, results[2].output]).toEqual(['open:1:needle', 'open'])
})

test.each([
  [{ Bsh: {} }, /tool_config.*did you mean Bash/],
  [{ Teleport: {} }, /tool_config.*the fields are Bash, /],
  [{ Bash: { timeout: 1 } }, /tool_config\.Bash.*did you mean timeout_s/],
  [{ Read: { timeout_s: 1 } }, /tool_config\.Read.*the fields are max_output_chars/],
  [{ Bash: { timeout_s: 0 } }, /tool_config\.Bash\.timeout_s/],
  [{ Grep: { timeout_s: 31 } }, /tool_config\.Grep\.timeout_s.*30/],
  [{ Read: { max_output_chars: 100_001 } }, /tool_config\.Read\.max_output_chars.*100000/],
  [{ Read: { max_output_chars: 10 } }, /tool_config\.Read\.max_output_chars.*1000/],
  [[], /tool_config/],
])('%j is refused, with the name of what is wrong', async (tool_config, message) => {
  const created = await stage.server.call('POST', '/conversations', { tool_config })
  expect([created.status, created.body.error]).toEqual([400, 'invalid_request'])
  expect(created.body.message).toMatch(message)
})
