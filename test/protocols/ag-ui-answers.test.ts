/** What clients of AG-UI answer: nothing is decided that the user did not decide, and nothing is half-done. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Interrupt } from '@ag-ui/client'
import type { ScriptedTurn } from '../../src/llm/scripted/script.ts'
import { Page } from '../support/ag-ui-page.ts'
import { setStage } from '../support/agent.ts'
import { KEY } from '../support/server.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHILDREN = join(ROOT, 'test/mcp/children')

const stage = await setStage(
  ({ body: { messages } }): ScriptedTurn => {
    const last = messages.at(-1)
    const said = JSON.stringify(last?.content)
    if (last?.role === 'tool') return { text: `Read: ${said}` }
    if (said.includes('ask me')) return { calls: [{ name: 'mcp__odd__ask', arguments: {} }] }
    return { text: 'Well.' }
  },
  { env: { OPENHANDS_SANDBOX_READABLE: [join(ROOT, 'node_modules'), CHILDREN].join(':') } },
)
afterAll(() => stage[Symbol.asyncDispose]())
const { server } = stage

beforeAll(async () => {
  const llm_config = { model: 'scripted', base_url: stage.model.baseUrl, api_key: 'scripted-model-key' }
  const mcp = { mcpServers: { odd: { command: process.execPath, args: [join(CHILDREN, 'odd-server.ts')] } } }
  const profile = { tools: ['Bash'], llm_config, mcp, permission_mode: 'bypass' }
  expect(await server.call('PUT', '/profiles/forms', profile)).toMatchObject({ status: 201 })
})

test('a form of an MCP server that the user cancels is declined', async () => {
  const page = new Page(server.url, 'forms', KEY, 'forms')
  const asked = await page.say('ask me')
  const [{ id: interruptId }] = asked.interrupts as [Interrupt]
  await page.run({ resume: [{ interruptId, status: 'cancelled' }] })
  expect(page.text.at(-1)).toContain('decline')
  expect(page.text.at(-1)).not.toContain('answered')
})
