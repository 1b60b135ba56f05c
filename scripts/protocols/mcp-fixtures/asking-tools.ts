/** Tools that ask the client with their result, and continue when it comes back with the answers. */
import type { McpServer, RequestStateCodec, ToolCallback } from '@modelcontextprotocol/server'
import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  inputRequired,
  inputResponse,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { text } from './tools.ts'

const NOTHING = z.object({})
const Capabilities = z.object({
  [CLIENT_CAPABILITIES_META_KEY]: z.object({ elicitation: z.object({}).optional(), sampling: z.object({}).optional() }),
})
const Named = z.object({ name: z.string() })

const elicit = (message: string, requestedSchema: z.ZodObject) => inputRequired.elicit({ message, requestedSchema })
const ASKS_NAME = elicit('What is your name?', Named)
const asksModel = (said: string) =>
  inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: said } }],
    maxTokens: 100,
  })

export function addAskingTools(server: McpServer, codec: RequestStateCodec): void {
  const add: Add = (name, run) =>
    void server.registerTool(`test_input_required_result_${name}`, { description: name, inputSchema: NOTHING }, run)
  add('elicitation', async (_, { mcpReq }) => {
    const user = acceptedContent(mcpReq.inputResponses, 'user_name', Named)
    return user ? text(`Hello, ${user.name}!`) : inputRequired({ inputRequests: { user_name: ASKS_NAME } })
  })
  add('sampling', async (_, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'capital_question')
    if (answer.kind === 'sampling') return text(JSON.stringify(answer.result.content))
    return inputRequired({ inputRequests: { capital_question: asksModel('What is the capital of France?') } })
  })
  add('list_roots', async (_, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, 'client_roots')
    if (answer.kind === 'roots') return text(answer.roots.map(({ uri }) => uri).join(', '))
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
  })
  add('capabilities', async (_, { mcpReq }) => {
    const declared = Capabilities.parse(mcpReq.envelope)[CLIENT_CAPABILITIES_META_KEY]
    return inputRequired({
      inputRequests: {
        ...(declared?.elicitation && { user_name: ASKS_NAME }),
        ...(declared?.sampling && { greeting: asksModel('Generate a greeting') }),
      },
    })
  })
  addToolsWithState(add, codec)
}

type Add = (name: string, run: ToolCallback<typeof NOTHING>) => void

function addToolsWithState(add: Add, codec: RequestStateCodec): void {
  const Confirmed = z.object({ ok: z.boolean() })
  for (const name of ['request_state', 'tampered_state'])
    add(name, async (_, { mcpReq }) => {
      if (mcpReq.requestState() !== undefined && acceptedContent(mcpReq.inputResponses, 'confirm', Confirmed))
        return text('state-ok')
      const confirm = elicit('Please confirm', Confirmed)
      return inputRequired({ inputRequests: { confirm }, requestState: await codec.mint(name) })
    })
  add('multiple_inputs', async (_, { mcpReq }) => {
    if (mcpReq.requestState() !== undefined) return text('done')
    return inputRequired({
      inputRequests: {
        user_name: ASKS_NAME,
        greeting: asksModel('Generate a greeting'),
        client_roots: inputRequired.listRoots(),
      },
      requestState: await codec.mint('multiple'),
    })
  })
  const STEPS = [
    { step1: elicit('Step 1: What is your name?', Named) },
    { step2: elicit('Step 2: What is your favorite color?', z.object({ color: z.string() })) },
  ]
  add('multi_round', async (_, { mcpReq }) => {
    const at = mcpReq.requestState<number>() ?? 0
    const inputRequests = STEPS[at]
    return inputRequests ? inputRequired({ inputRequests, requestState: await codec.mint(at + 1) }) : text('done')
  })
}
