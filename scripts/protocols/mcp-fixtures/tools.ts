/** Tools that answer at once, and those that talk before their answer. */
import type { McpServer } from '@modelcontextprotocol/server'
import { fromJsonSchema, inputRequired } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { PIXEL } from '../programs/story/story-client.ts'

const NOTHING = z.object({})
export const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] })
export const IMAGE = { type: 'image' as const, data: PIXEL, mimeType: 'image/png' }
/** The head of a file without sound. */
const AUDIO = {
  type: 'audio' as const,
  data: 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=',
  mimeType: 'audio/wav',
}
const resource = (uri: string, mimeType: string, said: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: said },
})

export function addTools(server: McpServer): void {
  const answers = {
    test_simple_text: text('This is a simple text response for testing.'),
    test_image_content: { content: [IMAGE] },
    test_audio_content: { content: [AUDIO] },
    test_embedded_resource: {
      content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
    },
    test_multiple_content_types: {
      content: [
        { type: 'text' as const, text: 'Multiple content types test:' },
        IMAGE,
        resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
      ],
    },
    test_error_handling: { ...text('This tool intentionally returns an error for testing'), isError: true },
  }
  for (const [name, answer] of Object.entries(answers))
    server.registerTool(name, { description: name, inputSchema: NOTHING }, async () => answer)
  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Tool with JSON Schema 2020-12 features', inputSchema: fromJsonSchema(RICH_SCHEMA) },
    async () => text('done'),
  )
  const header = z.string().meta({ 'x-mcp-header': 'Value' })
  server.registerTool(
    'test_header',
    { description: 'Has a parameter that is a header, too.', inputSchema: z.object({ value: header }) },
    async ({ value }) => text(value),
  )
  addTalkingTools(server)
}

function addTalkingTools(server: McpServer): void {
  for (const name of ['test_tool_with_logging', 'test_logging_tool'])
    server.registerTool(name, { description: 'Logs three times.', inputSchema: NOTHING }, async (_, { mcpReq }) => {
      for (const said of ['Tool execution started', 'Tool processing data', 'Tool execution completed'])
        await mcpReq.log('info', said)
      return text('done')
    })
  server.registerTool(
    'test_tool_with_progress',
    { description: 'Reports progress.', inputSchema: NOTHING },
    async (_, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      for (const progress of progressToken === undefined ? [] : [0, 50, 100])
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } })
      return text('done')
    },
  )
  server.registerTool(
    'test_streaming_elicitation',
    { description: 'Asks the user.', inputSchema: NOTHING },
    async () => {
      const requestedSchema = z.object({ name: z.string() })
      return inputRequired({
        inputRequests: { name: inputRequired.elicit({ message: 'What is your name?', requestedSchema }) },
      })
    },
  )
  server.registerTool(
    'test_missing_capability',
    { description: 'Needs the model of the client.', inputSchema: NOTHING },
    async () =>
      inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages: [], maxTokens: 1 }) } }),
  )
}

const RICH_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}
