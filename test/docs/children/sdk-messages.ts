/** An example of docs/sdk.md. */
import { query } from '../../../src/index.ts'

const answered = Promise.withResolvers<void>()
async function* messages() {
  yield 'Say one.'
  await answered.promise
  yield { content: [{ type: 'text' as const, text: 'Say two.' }] }
}

for await (const event of query({ prompt: messages() })) {
  if (event.type === 'AssistantMessage') console.log(event.text)
  if (event.type === 'Result') answered.resolve()
}
