/** The examples of docs/sdk.md are programs in test/docs/children: type-checked with the tests, and run here. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import type { ScriptedQuestion, ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { startScriptedModel } from '../../src/llm/scripted/scripted-model.ts'
import { some } from '../support/some.ts'

const page = await readFile(join(import.meta.dirname, '../../docs/sdk.md'), 'utf8')
const home = await mkdtemp(join(tmpdir(), 'agent-server-sdk-docs-'))
const model = await startScriptedModel(({ body }) => turnFor(body))
afterAll(async () => {
  await model.close()
  await rm(home, { recursive: true, force: true })
})

function turnFor({ messages }: ScriptedQuestion['body']): ScriptedTurn {
  const last = messages.at(-1)
  const said = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content)
  if (last?.role === 'tool') return { text: `It said: ${said}` }
  if (said.includes('files')) return { calls: [{ name: 'Bash', arguments: { command: 'ls -d .' } }] }
  if (said.includes('order')) return { calls: [{ name: 'look_up_order', arguments: { number: '17' } }] }
  if (said.includes('directory')) return { calls: [{ name: 'Bash', arguments: { command: 'mkdir made' } }] }
  return { text: said }
}

const OUTPUT: Readonly<Record<string, readonly string[]>> = {
  // The first: it tells how many sessions there are.
  server: ['Say hello. 1'],
  run: ['Say hello. completed 1'],
  query: ["Bash { command: 'ls -d .' }", 'It said:', 'completed after 2 steps'],
  tools: ['It said: {"number":"17","status":"shipped"}'],
  approvals: ['Bash asks: ', '\n1\n'],
  hooks: ["called with { command: 'mkdir made' }", 'Not on Sundays.'],
  messages: ['Say one.\nSay two.'],
  resume: ['waiting_for_confirmation\ncompleted'],
  sessions: ['idle true\n', '"type":"SystemInit"'],
}

test('the page shows these programs', async () => {
  const shown = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code)
  const programs = await Promise.all(Object.keys(OUTPUT).map((name) => readFile(programOf(name), 'utf8')))
  const asShown = programs.map((code) => code.replace(/^.*\n/, '').replaceAll('../../../src/index.ts', 'agent-server'))
  expect(new Set(some('programs', shown))).toEqual(new Set(asShown))
})

test('they run, one after the other, and the process ends by itself', async () => {
  const cwd = join(home, 'work')
  await mkdir(cwd)
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [programOf('all'), ...Object.keys(OUTPUT)], {
    cwd,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      LLM_MODEL: 'scripted',
      LLM_BASE_URL: model.baseUrl,
      LLM_API_KEY: 'scripted-model-key',
      OPENHANDS_DATA_DIR: join(home, 'data'),
    },
  })
  expect(stderr).toBe('')
  const outputs = stdout.split(/^== \w+$/m).slice(1)
  for (const [at, [name, parts]] of Object.entries(OUTPUT).entries())
    for (const part of parts) expect(outputs[at], name).toContain(part)
})

const programOf = (name: string) => join(import.meta.dirname, `children/sdk-${name}.ts`)
