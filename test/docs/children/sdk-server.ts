/** An example of docs/sdk.md. */
import { createServer, run } from '../../../src/index.ts'

await using server = await createServer()
const { finalText } = await run({
  prompt: 'Say hello.',
  options: { server: { baseUrl: server.url, apiKey: server.apiKey } },
})
console.log(finalText, (await server.client.conversations.count()).count)
