/**
 * The TypeScript of each page is one program, and of docs/sdk.md each block: they compile with strict settings, and do on
 * a server what the page says.
 */
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { API } from 'typescript/unstable/async'
import { afterAll, describe, expect, test } from 'vitest'
import { KEY } from '../support/server.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { allBlocks } from './blocks.ts'
import { setExampleStage } from './examples/stage.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** What the programs print. */
const OUTPUT: Readonly<Record<string, readonly string[]>> = {
  'docs/client.md': [
    'idle It is 42.',
    'sum',
    'ToolUse',
    'ToolResult',
    'Bash',
    'ToolUse',
    'hello',
    '',
    '200',
    '1',
    ' 0',
    'conversation_deleted 410',
    'agent-server',
  ],
  'docs/events.md': ['UserMessage', 'Result', 'completed true'],
  'docs/requests.md': ['permission true', 'Bash {"command":"mkdir backup"}', 'release permission'],
}

/** For a page that does not connect to a server itself. */
const CONNECT = `import { createClient } from 'agent-server/client'

const { AGENT_SERVER_URL: baseUrl = '', AGENT_SERVER_KEY: apiKey } = process.env
const client = createClient({ baseUrl, apiKey })
const conversation = client.conversation((await client.conversations.create()).id)
`

/** What the programs of docs/sdk.md print, in their order. They run in one process, which ends by itself. */
const SDK_OUTPUT: readonly (readonly string[])[] = [
  ['Hello. completed 1'],
  ["Bash { command: 'ls -d .' }", 'Done.', 'completed after 2 steps'],
  ['{ passed: 3, failed: 0 }'],
  ['true undefined'],
  ['Order 17 has shipped.'],
  ['Bash asks: ', '\n1\n'],
  ["called with { command: 'mkdir made' }", 'Done.'],
  ['One.\nTwo.'],
  ['idle true\n', '"type":"SystemInit"'],
  ["[ { type: 'text', text: 'Say hello.' } ]", 'greeting'],
  ['waiting_for_confirmation\ncompleted'],
  ['Hello. 1'],
  ['conversation_not_found'],
]

const SDK = 'docs/sdk.md'
const programs = allBlocks().filter(({ language }) => language === 'ts')
const blocks = programs.filter(({ page }) => page !== SDK)
const ofSdk = programs.filter(({ page }) => page === SDK)
const pages = [...new Set(blocks.map(({ page }) => page))]

/** In the checkout, where `agent-server/client` is this package. */
const folder = join(ROOT, `dist/programs-of-pages-${process.pid}`)
const pathOf = (page: string) => join(folder, `${basename(page, '.md')}.ts`)
await mkdir(folder, { recursive: true })
await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))
for (const page of pages) {
  const code = blocks.flatMap((block) => (block.page === page ? block.text : []))
  const isWhole = code[0]?.includes('createClient(') === true
  await writeFile(pathOf(page), [isWhole ? '' : CONNECT, ...code].join('\n'))
}
for (const [at, { text }] of ofSdk.entries()) await writeFile(join(folder, `sdk-${at}.ts`), text)
const imports = ofSdk.map((_, at) => `process.stdout.write('== ${at}\\n')\nawait import('./sdk-${at}.ts')\n`)
await writeFile(join(folder, 'sdk.ts'), imports.join(''))
const compiling = faultsOf([...pages.map(pathOf), ...ofSdk.map((_, at) => join(folder, `sdk-${at}.ts`))])

/** Of these files alone: `tsc` would check what they import, too, which takes four times the processor time. */
async function faultsOf(files: readonly string[]): Promise<readonly string[]> {
  const compiler = new API({ cwd: ROOT })
  try {
    const config = join(folder, 'tsconfig.json')
    const { program } = (await compiler.updateSnapshot({ openProjects: [config] })).getProject(config)!
    const found = await Promise.all(
      files.flatMap((file) => [program.getSyntacticDiagnostics(file), program.getSemanticDiagnostics(file)]),
    )
    return found.flat().map(({ fileName, text }) => `${fileName}: ${text}`)
  } finally {
    await compiler.close()
  }
}

const stage = await setExampleStage()
const { server } = stage
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await stage[Symbol.asyncDispose]()
})

/** A request of another conversation, which the program of docs/requests.md lists. */
const waiting = { title: 'release', tools: ['Bash'], permission_mode: 'default' }
const { body } = await server.call('POST', '/conversations', waiting)
await server.call('POST', `/conversations/${body.id}/messages`, { message: { role: 'user', content: 'Deploy it.' } })
await server.call('POST', `/conversations/${body.id}/run`, { wait: true, timeout: PATIENCE_S })

describe('the programs', () => {
  test('are those whose output is known', () => {
    expect(pages.toSorted()).toEqual(Object.keys(OUTPUT).toSorted())
  })

  test('compile', async () => {
    expect(await compiling).toEqual([])
  })

  test.each(pages)('of %s run', async (page) => {
    const env = { ...process.env, AGENT_SERVER_URL: server.url, AGENT_SERVER_KEY: KEY }
    const { stdout } = await run(process.execPath, [pathOf(page)], { env })
    expect(stdout.trimEnd().split('\n')).toEqual(OUTPUT[page])
  })

  test('of docs/sdk.md run, one after the other', async () => {
    const home = join(stage.directory, 'sdk')
    const cwd = join(home, 'work')
    await mkdir(cwd, { recursive: true })
    const env = {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      LLM_MODEL: stage.model['model'],
      LLM_BASE_URL: stage.model['base_url'],
      LLM_API_KEY: stage.model['api_key'],
      OPENHANDS_DATA_DIR: join(home, 'data'),
    }
    const { stdout, stderr } = await run(process.execPath, [join(folder, 'sdk.ts')], { cwd, env })
    expect(stderr).toBe('')
    const outputs = stdout.split(/^== \d+$/m).slice(1)
    expect(outputs.length).toBe(SDK_OUTPUT.length)
    for (const [at, parts] of SDK_OUTPUT.entries()) for (const part of parts) expect(outputs[at]).toContain(part)
  })
})
