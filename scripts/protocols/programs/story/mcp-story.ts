/** The conversation by a client of MCP: each turn is a call of a tool. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { AgentReport } from '../../../../src/protocols/mcp/agent-report.ts'
import type { Reply, StoryClient, StoryPlace } from './story-client.ts'

export class McpStory implements StoryClient {
  readonly #place: StoryPlace
  #client: Client
  #report: AgentReport | undefined

  private constructor(place: StoryPlace, client: Client) {
    this.#place = place
    this.#client = client
  }

  static start = async (place: StoryPlace): Promise<McpStory> => new McpStory(place, await connect(place))

  id = async () => this.#named().conversation_id

  say = async (prompt: string) => {
    if (!this.#report) return await this.#call('start_agent', { prompt })
    return await this.#call('continue_agent', { ...this.#named(), prompt })
  }

  ask = async (text: string) => void (await this.say(text))

  reply = async (reply: Reply) => {
    if ('label' in reply) return await this.say(reply.label)
    const [call] = this.#report?.pending ?? []
    if (!call) throw new Error('nothing waits')
    const { request_id, tool_use_id, input_hash } = call
    const decision = { ...this.#named(), request_id, tool_use_id, input_hash, behavior: 'allow' }
    return await this.#call('decide', decision)
  }

  stop = async () => void (await this.#call('stop_agent', this.#named()))

  comeBack = async () => {
    await this.#client.close()
    this.#client = await connect(this.#place)
  }

  shown = async () => JSON.stringify(this.#report)

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close()
  }

  #named(): { conversation_id: string } {
    if (!this.#report) throw new Error('nothing was said')
    return { conversation_id: this.#report.conversation_id }
  }

  async #call(name: string, args: object): Promise<string> {
    const { structuredContent, content } = await this.#client.callTool({ name, arguments: { ...args } })
    if (!structuredContent) throw new Error(JSON.stringify(content))
    this.#report = structuredContent as AgentReport
    if (this.#report.status === 'running') return await this.#call('get_agent', this.#named())
    return this.#report.final_text ?? ''
  }
}

async function connect({ url, key }: StoryPlace): Promise<Client> {
  const client = new Client({ name: 'story', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
  return client
}
