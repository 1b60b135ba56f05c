/** Forms of MCP servers in queries. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { query } from '../../src/index.ts'
import { eventsOf, resultsIn, setServedStage } from './stage.ts'

// The server is a program of the tests, which a sandbox hides where the clone is below /tmp.
const { options, home } = await setServedStage({ OPENHANDS_ISOLATION: 'none' })

test.each([undefined, () => undefined])('a form that nobody answers is declined: %s', async (answerQuestions) => {
  const cwd = join(home, 'forms')
  await mkdir(cwd, { recursive: true })
  const odd = { command: process.execPath, args: [join(import.meta.dirname, '../mcp/children/odd-server.ts')] }
  const asking = query({
    prompt: 'call mcp__odd__ask',
    options: {
      ...options,
      cwd,
      mcpServers: { odd },
      permissionMode: 'bypass',
      ...(answerQuestions && { answerQuestions }),
    },
  })
  expect(resultsIn(await eventsOf(asking))).toMatchObject([
    { stop_reason: 'completed', final_text: expect.stringContaining('decline') },
  ])
})
