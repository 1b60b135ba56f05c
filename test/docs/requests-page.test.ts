/** The program of docs/requests.md compiles with strict settings, and answers what waits on a server. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { setStage } from '../support/agent.ts'
import { PATIENCE_S } from '../support/patience.ts'
import { KEY } from '../support/server.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** In the checkout, where `agent-server/client` is this package. */
const folder = join(ROOT, `dist/requests-page-${process.pid}`)
afterAll(() => rm(folder, { recursive: true, force: true }))

const bash = (command: string) => ({ name: 'Bash', arguments: { command } })
const WHERE = {
  question: 'Where should the backup be?',
  header: 'Place',
  options: ['Here', 'Elsewhere'].map((label) => ({ label, description: '' })),
  multiSelect: false,
}

test('the blocks of docs/requests.md are a program that answers a permission, a question and a client tool', async () => {
  const page = await readFile(join(ROOT, 'docs/requests.md'), 'utf8')
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)
  expect(blocks.length).toBeGreaterThan(5)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'program.ts'), blocks.join('\n'))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))

  await using stage = await setStage({
    replies: [
      {
        when: 'Back up',
        turns: [
          { calls: [bash('mkdir backup')] },
          { calls: [{ name: 'AskUserQuestion', arguments: { questions: [WHERE] } }] },
          { calls: [{ name: 'look_up_order', arguments: { number: '17' } }] },
          { text: 'Done.' },
        ],
      },
      { when: 'Deploy', turns: [{ calls: [bash('mkdir deployed')] }] },
    ],
  })
  await stage.server.restart('SIGTERM', {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: stage.model.baseUrl,
    LLM_API_KEY: 'scripted-model-key',
  })
  const other = await stage.create({ title: 'release', tools: ['Bash'], permission_mode: 'default' })
  await stage.server.call('POST', `/conversations/${other}/messages`, {
    message: { role: 'user', content: 'Deploy it.' },
  })
  await stage.server.call('POST', `/conversations/${other}/run`, { wait: true, timeout: PATIENCE_S })

  const env = { ...process.env, AGENT_SERVER_URL: stage.server.url, AGENT_SERVER_KEY: KEY }
  const [, { stdout }] = await Promise.all([
    run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder]).catch((error: { stdout: string }) => {
      throw new Error(error.stdout)
    }),
    run(process.execPath, [join(folder, 'program.ts')], { env }),
  ])
  const followed = ['permission', 'question', 'client_tool'].flatMap((kind) => [
    `RequestOpened ${kind}`,
    `RequestAnswered ${kind}`,
  ])
  expect(stdout.trim().split('\n')).toEqual([
    'permission true',
    'Bash {"command":"mkdir backup"}',
    'release permission',
    ...followed,
  ])
})
