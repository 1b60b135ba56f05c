/** An MCP server with 200 tools, as a program. */
import { createInterface } from 'node:readline'

const TOOLS = 200

const tools = Array.from({ length: TOOLS }, (_, at) => ({
  name: `tool_${at}`,
  description: `Returns what is known of subject ${at}.`,
  inputSchema: { type: 'object', properties: { subject: { type: 'string' } }, required: ['subject'] },
}))

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line) as {
    id?: number
    method: string
    params?: { protocolVersion?: string }
  }
  const result =
    method === 'initialize'
      ? {
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'bench', version: '1' },
        }
      : method === 'tools/list'
        ? { tools }
        : method === 'tools/call'
          ? { content: [{ type: 'text', text: 'Nothing is known.' }] }
          : {}
  if (id !== undefined) process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
}
