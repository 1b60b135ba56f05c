/** The programs of `examples/`, as their users start them: against a real server and a scripted model. */
import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import type { Stage } from '../support/agent.ts'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'

const TASKS = Array.from({ length: 50 }, (_, index) => `task ${index}`)
const FINDING = { file: 'a.ts', line: 3, problem: 'divides by zero' }

const REPLIES = [
  {
    when: 'order.txt',
    turns: [
      bash('cat order.txt'),
      { calls: [{ name: 'PriceOf', arguments: { article: 'pen' } }] },
      { calls: [{ name: 'PriceOf', arguments: { article: 'book' } }] },
      bash('echo 14 > total.txt'),
      { text: 'It costs 14 euros.' },
    ],
  },
  { when: 'Remove', turns: [bash('rm -f a.log'), bash('rm -f b.log'), { text: 'Removed one.' }] },
  { when: 'task', turns: [{ text: 'ok', usage: { prompt_tokens: 1, completion_tokens: 1, cost: 0.01 } }] },
]

let stage: Stage
let home: string
let work: string
beforeAll(async () => {
  stage = await setStage({ replies: REPLIES })
  home = await mkdtemp(join(tmpdir(), 'agent-server-examples-'))
  work = join(home, 'work')
  await mkdir(work)
  await stage.server.restart('SIGTERM', { ...model(), OPENHANDS_CALLBACK_ALLOW: '127.0.0.1' })
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true, maxRetries: 3 })
})

const model = () => ({ LLM_MODEL: 'scripted', LLM_BASE_URL: stage.model.baseUrl, LLM_API_KEY: 'scripted-model-key' })

type Program = { readonly child: ChildProcess; readonly output: () => string; readonly code: Promise<number | null> }

function start(name: string, args: readonly string[] = [], env: Record<string, string> = {}): Program {
  const child = spawn(process.execPath, [join(import.meta.dirname, `../../examples/${name}.ts`), ...args], {
    cwd: work,
    env: {
      PATH: process.env['PATH'],
      HOME: home,
      ...model(),
      OPENHANDS_DATA_DIR: join(home, 'data'),
      AGENT_SERVER_URL: stage.server.url,
      AGENT_SERVER_KEY: KEY,
      ...env,
    },
    stdio: 'pipe',
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  return { child, output: () => said, code: once(child, 'close').then(([code]) => code as number | null) }
}

test('embed.ts: an agent reads a file, calls a function of the program and writes a file', async () => {
  await writeFile(join(work, 'order.txt'), 'pen\nbook\n')
  const { code, output } = start('embed', [work])
  expect(await code, output()).toBe(0)
  expect(output()).toMatch(/PriceOf \{"article":"pen"\}\nPriceOf \{"article":"book"\}\n/)
  expect(output()).toMatch(/It costs 14 euros\.\ntotal\.txt: 14\n$/)
})

test('approval-bot.ts: a call runs after a person has allowed it, and another one is denied', async () => {
  const { child, code, output } = start('approval-bot', ['Remove the old logs.'])
  const asked = () => [...output().matchAll(/May the agent do this\? (\S+) Bash (.*)/g)]
  await expect.poll(() => asked().length, { message: output() }).toBe(1)
  child.stdin!.write(`allow ${asked()[0]![1]}\n`)
  await expect.poll(() => asked().length).toBe(2)
  child.stdin!.write(`deny ${asked()[1]![1]}\n`)
  expect(await code, output()).toBe(0)
  expect(output()).toMatch(/done: Removed one\.\n$/)
  expect(asked().map(([, , input]) => input)).toEqual(['{"command":"rm -f a.log"}', '{"command":"rm -f b.log"}'])
})

test.each([
  ['approves', { text: JSON.stringify({ verdict: 'approve', findings: [] }) }, 0, /^approve\n$/],
  [
    'rejects',
    { text: JSON.stringify({ verdict: 'reject', findings: [FINDING] }) },
    1,
    /^a\.ts:3: divides by zero\nreject\n$/,
  ],
  ['cannot be asked', { status: 401, error: { message: 'wrong key' } }, 2, /^No verdict \(error\)\. .*wrong key/],
])('ci-review.ts: if the model %s, the exit code says so', async (_, turn, expected, said) => {
  const reviewer = await startScriptedModel([turn])
  try {
    const { child, code, output } = start('ci-review', [], { LLM_BASE_URL: reviewer.baseUrl })
    child.stdin!.end('a change')
    expect(await code, output()).toBe(expected)
    expect(output()).toMatch(said)
  } finally {
    await reviewer.close()
  }
})

test('batch.ts: 50 conversations; killed and started again, each task is done once and the costs add up', async () => {
  const file = join(work, 'tasks.txt')
  await writeFile(file, TASKS.join('\n'))
  const first = start('batch', ['nightly', file])
  await expect.poll(() => first.output().split('\n').length).toBeGreaterThan(10)
  first.child.kill('SIGKILL')
  await first.code
  const { code, output } = start('batch', ['nightly', file])
  expect(await code, output()).toBe(0)
  expect(output()).toMatch(/50 done, \d\d of them before; 0 failed; \$0\.5000\n$/)
  const { conversations } = createClient({ baseUrl: stage.server.url, apiKey: KEY })
  const all = await conversations.list({ user_id: 'nightly' }).all()
  expect(all).toHaveLength(TASKS.length)
  expect(new Set(all.map(({ title }) => title))).toEqual(new Set(TASKS))
})
