/** The TypeScript of each page is one program: it compiles with strict settings, and does on a server what the page says. */
import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
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
    'hello',
    '',
    '1',
    ' 0',
    'conversation_deleted 410',
  ],
  'docs/events.md': ['UserMessage', 'Result', 'completed true'],
  'docs/requests.md': [
    'permission true',
    'Bash {"command":"mkdir backup"}',
    'release permission',
    ...['permission', 'question', 'client_tool'].flatMap((kind) => [
      `RequestOpened ${kind}`,
      `RequestAnswered ${kind}`,
    ]),
  ],
}

/** For a page that does not connect to a server itself. */
const CONNECT = `import { createClient } from 'agent-server/client'

const { AGENT_SERVER_URL: baseUrl = '', AGENT_SERVER_KEY: apiKey } = process.env
const client = createClient({ baseUrl, apiKey })
const conversation = client.conversation((await client.conversations.create()).id)
`

const blocks = allBlocks().filter(({ page, language }) => language === 'ts' && page !== 'docs/sdk.md')
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
const compiling = run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder]).catch((error: { stdout: string }) => error)

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
    expect((await compiling).stdout).toBe('')
  })

  test.each(pages)('of %s run', async (page) => {
    const env = { ...process.env, AGENT_SERVER_URL: server.url, AGENT_SERVER_KEY: KEY }
    const { stdout } = await run(process.execPath, [pathOf(page)], { env })
    expect(stdout.trimEnd().split('\n')).toEqual(OUTPUT[page])
  })
})
