/** The handler of `/mcp` with the tools, prompts and resources that the conformance tests ask for, instead of the agents. */
import { fastify } from 'fastify'
import { createRequestStateCodec, McpServer } from '@modelcontextprotocol/server'
import { acceptJsonOnly } from '../../../src/http/request/parse-input.ts'
import { routeMcp } from '../../../src/protocols/mcp/mcp-routes.ts'
import { answerMcp } from '../../../src/protocols/mcp/serve-mcp.ts'
import { serveTasks } from '../../../src/protocols/mcp/task-extension.ts'
import { addAskingTools } from './asking-tools.ts'
import { FixtureTasks } from './fixture-tasks.ts'
import { addPrompts } from './prompts.ts'
import { addResources } from './resources.ts'
import { addTools } from './tools.ts'

export async function startFixtureServer() {
  const tasks = new FixtureTasks()
  const app = fastify()
  acceptJsonOnly(app)
  routeMcp(
    app,
    [],
    async (request, reply) => await answerMcp(request, reply, { createServer: () => createServer(tasks) }),
  )
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { url, [Symbol.asyncDispose]: async () => await app.close() }
}

const UNCHANGING = { tools: { listChanged: false }, prompts: { listChanged: false }, resources: { listChanged: false } }
const codec = createRequestStateCodec({ key: 'a key of the conformance tests, of 32 bytes' })

function createServer(tasks: FixtureTasks): McpServer {
  const server = new McpServer(
    { name: 'agent-server-fixtures', version: '1' },
    {
      capabilities: { logging: {}, ...UNCHANGING },
      requestState: { verify: async (state, context) => await codec.verify(state, context) },
    },
  )
  addTools(server)
  addAskingTools(server, codec)
  addPrompts(server)
  addResources(server)
  tasks.addTools(server)
  serveTasks(server, tasks)
  return server
}
