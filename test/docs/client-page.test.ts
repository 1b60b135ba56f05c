/** The program of docs/client.md compiles with strict settings, and runs against a server. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { bash, setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** In the checkout, where `agent-server/client` is this package. */
const folder = join(ROOT, `dist/client-page-${process.pid}`)
afterAll(() => rm(folder, { recursive: true, force: true }))

test('the blocks of docs/client.md are a program that does what the page says', async () => {
  const page = await readFile(join(ROOT, 'docs/client.md'), 'utf8')
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code)
  expect(blocks.length).toBeGreaterThan(6)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'program.ts'), blocks.join('\n'))
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }))

  await using stage = await setStage([bash('echo 42'), { text: 'It is 42.' }])
  await stage.server.restart('SIGTERM', {
    LLM_MODEL: 'scripted',
    LLM_BASE_URL: stage.model.baseUrl,
    LLM_API_KEY: 'scripted-model-key',
  })
  const env = { ...process.env, AGENT_SERVER_URL: stage.server.url, AGENT_SERVER_KEY: KEY }
  const [, { stdout }] = await Promise.all([
    run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder]).catch((error: { stdout: string }) => {
      throw new Error(error.stdout)
    }),
    run(process.execPath, [join(folder, 'program.ts')], { env }),
  ])
  expect(stdout).toBe('idle It is 42.\n1\nToolUse\nToolResult\nBash\nhello\n\n1\n 0\nconversation_deleted 410\n')
})
