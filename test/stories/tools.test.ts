/** The tools that models know from their training, on a real server. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { borrowServer } from '../support/shared-server.ts'
import { makePdf } from '../support/pdf.ts'

const shared = await borrowServer()
afterAll(() => shared[Symbol.asyncDispose]())

type Call = { readonly name: string; readonly arguments: Record<string, unknown> }
const use = (name: string, args: Record<string, unknown>): Call => ({ name, arguments: args })
const turn = (...calls: Call[]) => ({ calls })

/** The results in the order of their calls. */
// eslint-disable-next-line typescript/no-explicit-any
function resultsOf(events: any[]): any[] {
  const ids = events.filter(({ type }) => type === 'ToolUse').map((event) => event.tool_use_id)
  const results = events.filter(({ type }) => type === 'ToolResult')
  return results.toSorted((a, b) => ids.indexOf(a.tool_use_id) - ids.indexOf(b.tool_use_id))
}

test('the claude preset works on a file, and what was read counts after kill -9', async () => {
  await using stage = await setStage([
    turn(use('Write', { file_path: 'a.py', content: 'x = 1\n' })),
    turn(use('Read', { file_path: 'a.py' }), use('Glob', { pattern: '*.py' }), use('Grep', { pattern: 'x = \\d' })),
    turn(use('Edit', { file_path: 'a.py', old_string: '1', new_string: '2' })),
    { text: 'Done.' },
    turn(use('Edit', { file_path: 'a.py', old_string: '2', new_string: '3' })),
    { text: 'Again.' },
    turn(use('Edit', { file_path: 'a.py', old_string: '9', new_string: '10' })),
    { text: 'No.' },
  ])
  const id = await stage.create({ tools: 'claude' })
  const { body: conversation } = await stage.server.call('GET', `/conversations/${id}`)
  expect(conversation.tools).toEqual([
    'Bash',
    'BashOutput',
    'KillShell',
    'Read',
    'Write',
    'Edit',
    'MultiEdit',
    'Glob',
    'Grep',
    'WebFetch',
    'AskUserQuestion',
    'Task',
  ])
  const [written, read, globbed, grepped, edited] = resultsOf(await stage.say(id, 'go'))
  expect(written).toMatchObject({ is_error: false })
  expect(read.output).toBe('     1\tx = 1')
  expect([globbed.output, grepped.output]).toEqual(['a.py', 'a.py'])
  expect(edited.output).toContain('x = 2')
  await stage.server.restart('SIGKILL')
  await stage.say(id, 'again')
  const file = join(conversation.workdir, 'a.py')
  expect(await readFile(file, 'utf8')).toBe('x = 3\n')
  await writeFile(file, 'x = 9\n')
  const [refused] = resultsOf(await stage.say(id, 'and again'))
  expect(refused.error_message).toMatch(/has changed on disk since it was read/)
})

test('Read shows the text of a PDF, in which a secret is redacted', async () => {
  await using stage = await setStage([turn(use('Read', { file_path: 'a.pdf' })), { text: 'Done.' }], shared)
  const id = await stage.create({ tools: 'minimal', secrets: { PIN: 'hunter2-hunter2' } })
  const { body: conversation } = await stage.server.call('GET', `/conversations/${id}`)
  await writeFile(join(conversation.workdir, 'a.pdf'), makePdf({ pages: ['The PIN is hunter2-hunter2.'] }))
  const [read] = resultsOf(await stage.say(id, 'go'))
  expect(read.output).toMatch(/^\[PDF with 1 page; text of page 1\]\n\n\[page 1\]\nThe PIN is <secret/)
})

test('no output of these tools holds the value of a secret', async () => {
  const secret = 'a-secret-that-nobody-may-see'
  await using stage = await setStage([
    bash('printf "key: %s\\n" "$TOKEN" > a.txt'),
    turn(use('Read', { file_path: 'a.txt' }), use('Grep', { pattern: 'key', output_mode: 'content' })),
    turn(use('Edit', { file_path: 'a.txt', old_string: 'key', new_string: 'token' })),
    turn(use('apply_patch', { input: '*** Begin Patch\n*** Update File: a.txt\n@@\n-nowhere\n+x\n*** End Patch' })),
    turn(use('Bash', { command: 'cat a.txt; sleep 0.05', run_in_background: true })),
    { text: 'Done.' },
  ])
  const tools = ['Bash', 'Read', 'Grep', 'Edit', 'apply_patch']
  const id = await stage.create({ tools, secrets: { TOKEN: secret } })
  const results = resultsOf(await stage.say(id, 'go'))
  expect(results).toHaveLength(6)
  expect(results[1].output).toBe('     1\tkey: <secret:TOKEN>')
  expect(results[2].output).toBe('a.txt:1:key: <secret:TOKEN>')
  expect(JSON.stringify([await stage.events(id), stage.model.requests])).not.toContain(secret)
  const { workdir } = (await stage.server.call('GET', `/conversations/${id}`)).body
  expect(await readFile(join(workdir, 'a.txt'), 'utf8')).toBe(`token: ${secret}\n`)
})

test('the web is reached only as far as the network policy and the guard of addresses permit', async () => {
  const asked: string[] = []
  const engine = createServer((request, response) => {
    asked.push(String(request.headers.authorization))
    response.setHeader('content-type', 'application/json')
    response.end('{"results":[{"title":"T","url":"https://example.com/","content":"found"}]}')
  })
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void engine.close())
  const TAVILY_BASE_URL = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`
  const calls = turn(use('WebSearch', { query: 'prices' }), use('WebFetch', { url: TAVILY_BASE_URL }))
  const env = { TAVILY_API_KEY: 'tvly-0123456789abcdef', TAVILY_BASE_URL }
  await using stage = await setStage([calls, { text: 'Done.' }, calls, { text: 'Done.' }], { env })
  const tools = ['WebSearch', 'WebFetch']

  const open = resultsOf(await stage.say(await stage.create({ tools }), 'go'))
  expect(open[0].output).toContain('1. T\nhttps://example.com/\nfound')
  expect(open[1].error_message).toMatch(/its address is not a public one \(loopback\)/)
  const closed = resultsOf(await stage.say(await stage.create({ tools, network: { mode: 'none' } }), 'go'))
  expect(closed.map(({ error_type }) => error_type)).toEqual(['denied', 'denied'])
  expect(closed[0].error_message).toMatch(/this conversation has no network/)
  expect(asked).toEqual(['Bearer tvly-0123456789abcdef'])
})

test('a preset that does not exist, and a tool that is not configured, are errors of the request', async () => {
  await using stage = await setStage([], shared)
  const create = (tools: unknown) =>
    stage.server.call('POST', '/conversations', { llm_config: { model: 'm', api_key: 'k' }, tools })
  expect((await create('everything')).status).toBe(400)
  const { status, body } = await create(['WebSearch'])
  expect(status).toBe(400)
  expect(body).toMatchObject({ error: 'invalid_request', message: expect.stringContaining('TAVILY_API_KEY') })
  expect((await stage.server.call('GET', '/info')).body.tools).not.toContain('WebSearch')
})
