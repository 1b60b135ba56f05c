/**
 * The client that `npm run check:mcp` tests: a conversation of a running agent-server that uses the MCP server whose URL
 * is the argument, and calls the tools of the scenario. A user who is asked for an authorization gives it at once.
 */
import { z } from 'zod'

const TOOLS: Readonly<Record<string, readonly string[]>> = {
  initialize: [],
  tools_call: ['add_numbers'],
  'elicitation-sep1034-client-defaults': ['test_client_elicitation_defaults'],
  'sse-retry': ['test_reconnection'],
}
/** How often a call asks for more rights. */
const MAX_AUTHORIZATIONS = 5
const POLL_MS = 20

const { AGENT_SERVER_URL = '', AGENT_SERVER_KEY = '', MODEL_URL = '', MCP_CONFORMANCE_SCENARIO = '' } = process.env
const url = process.argv.at(-1) ?? ''

const Context = z.object({ client_id: z.string().optional(), client_secret: z.string().optional() })
const Server = z.object({ status: z.string(), error: z.string().optional(), authorization_url: z.string().optional() })
const Servers = z.object({ items: z.array(Server) })
const Option = z.object({ label: z.string(), description: z.string() })
const Question = z.object({ options: z.array(Option) })
const Questions = z.object({
  items: z.array(z.object({ request_id: z.string(), payload: z.object({ questions: z.array(Question) }) })),
})

const { id } = z.object({ id: z.string() }).parse(
  await call('POST', '/conversations', {
    llm_config: { model: 'scripted', base_url: MODEL_URL, api_key: 'scripted-model-key' },
    mcp: { mcpServers: { test: { url, ...oauth() } } },
  }),
)
for (const tool of TOOLS[MCP_CONFORMANCE_SCENARIO] ?? ['test-tool']) await use(tool)
if (TOOLS[MCP_CONFORMANCE_SCENARIO]?.length === 0) await say('nothing')
await call('DELETE', `/conversations/${id}`)

function oauth(): object {
  const { client_id, client_secret } = Context.parse(JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}'))
  const grant = MCP_CONFORMANCE_SCENARIO.includes('client-credentials') ? 'client_credentials' : undefined
  if (MCP_CONFORMANCE_SCENARIO === 'auth/basic-cimd')
    return { oauth: { client_id: 'https://conformance-test.local/client-metadata.json' } }
  return client_id === undefined ? {} : { oauth: { client_id, client_secret, grant } }
}

/** Calls the tool again after each authorization that it needs. */
async function use(tool: string): Promise<void> {
  for (let tries = 0; tries <= MAX_AUTHORIZATIONS; tries++) {
    await say(`mcp__test__${tool}`)
    const [server] = Servers.parse(await call('GET', `/conversations/${id}/mcp`)).items
    process.stderr.write(`${JSON.stringify(server)}\n`)
    if (server?.authorization_url === undefined) return
    const { headers } = await fetch(server.authorization_url, { redirect: 'manual' })
    const back = await fetch(headers.get('location') ?? '')
    process.stderr.write(`${back.status} ${await back.text()}\n`)
  }
}

/** Resolves when the run is over. Questions get the answers that the server suggests. */
async function say(content: string): Promise<void> {
  await call('POST', `/conversations/${id}/messages`, { message: { role: 'user', content }, run: true })
  for (;;) {
    const { status } = z.object({ status: z.string() }).parse(await call('GET', `/conversations/${id}`))
    if (status !== 'running' && status !== 'queued') return
    const { items } = Questions.parse(await call('GET', `/conversations/${id}/requests?kinds=elicitation`))
    for (const { request_id, payload } of items)
      await call('POST', `/conversations/${id}/requests/${request_id}`, {
        kind: 'elicitation',
        answers: Object.fromEntries(
          payload.questions.map(({ options }, at) => [
            String(at),
            options.find(({ description }) => description.startsWith('Suggested'))?.label ?? '',
          ]),
        ),
      })
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

async function call(method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${AGENT_SERVER_URL}${path}`, {
    method,
    headers: { authorization: `Bearer ${AGENT_SERVER_KEY}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}
