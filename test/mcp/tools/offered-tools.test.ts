/** What of the tools of a server is offered: a bounded number of characters. */
import { expect, test } from 'vitest'
import { offerTools } from '../../../src/mcp/tools/offered-tools.ts'

const show = (text: string) => text
const toolsOf = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    name: `tool_${at}`,
    inputSchema: { type: 'object', properties: { p: { description: 'x'.repeat(30_000) } } },
  }))

test('tools are left out, with the reason, when those before them are too large together', async () => {
  const { tools, leftOut } = await offerTools('s', {}, toolsOf(200), show)
  const chars = tools.reduce((sum, tool) => sum + JSON.stringify(tool).length, 0)
  expect(tools.length).toBeGreaterThan(100)
  expect(chars).toBeLessThanOrEqual(4 * 1024 ** 2)
  expect(leftOut[0]).toMatch(/^tool_\d+: the tools before it have 4194304 characters/)
})
