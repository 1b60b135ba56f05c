/** What a user of the SDK writes: compiled and run in an empty project in which the package is installed. */
import type { QueryOutcome, SdkTool } from 'agent-server'
import { AgentServerError, createClient, createServer, query, run, sessions, tool } from 'agent-server'
import { AgentServerError as SameError } from 'agent-server/client'
import { z } from 'zod'

const [, , baseUrl, persistDir = ''] = process.argv
const numbers = { a: z.number(), b: z.number() }
const multiply: SdkTool<typeof numbers> = tool('Multiply', 'Multiplies.', numbers, ({ a, b }) => a * b)
const place = { persistDir }
const options = { ...place, baseUrl, model: 'scripted', apiKey: 'key' }

const outcome: QueryOutcome = await run({ prompt: 'multiply', options: { ...options, tools: [multiply] } })
console.log(outcome.finalText)
const types: string[] = []
for await (const event of query({ prompt: 'shell', options }))
  if (event.type === 'ToolResult') types.push(JSON.stringify(event.output))
console.log(types.join().includes('6 times 7'))
const read = await run({ prompt: 'document', options: { ...options, cwd: import.meta.dirname, tools: ['Read'] } })
const [page] = read.events.filter((event) => event.type === 'ToolResult')
console.log(JSON.stringify(page?.output).includes('The answer is 42.'))
const verdict = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
const {
  structuredOutput,
  stopReason,
  error: fault,
} = await run({ prompt: 'verdict', options: { ...options, outputSchema: verdict } })
console.log(JSON.stringify(structuredOutput ?? { stopReason, fault }))
console.log((await Array.fromAsync(sessions(place).list())).length)
const labelled = await run({ prompt: 'shell', options: { ...options, labels: ['a, b'], metadata: { ticket: 17 } } })
await sessions(place).rename(labelled.sessionId, 'renamed')
const found = await Array.fromAsync(sessions(place).list({ label: ['a, b'], metadata: ['ticket=17'] }))
console.log(found.map(({ title }) => title).join())

const server = await createServer({ ...place, port: 0 })
const client = createClient({ baseUrl: server.url, apiKey: server.apiKey })
console.log((await client.conversations.count()).count)
const error = await client
  .conversation('x')
  .get()
  .catch((reason: unknown) => reason)
console.log(error instanceof AgentServerError && error instanceof SameError && error.code)
console.log(Object.keys((await client.openapi()) as object).includes('paths'))
const parts = ['', '/swagger-ui-bundle.js', '/swagger-ui.css', '/start.js']
const answers = await Promise.all(parts.map((part) => fetch(`${server.url}/docs${part}`)))
console.log(answers.map(({ status }) => status).join(' '))
await server.close()
