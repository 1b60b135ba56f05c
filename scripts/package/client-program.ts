/** What a user of the client writes: compiled and run in an empty project in which the package is installed. */
import type { Event, RunSummary } from 'agent-server/client'
import { AgentServerError, createClient, verifyWebhook } from 'agent-server/client'

const client = createClient({ baseUrl: 'http://127.0.0.1:9', apiKey: 'key', maxRetries: 0 })
const conversation = client.conversation('0199c3d2-0000-7000-8000-000000000000')

export async function ask(text: string): Promise<string> {
  const { result, status }: RunSummary = await conversation.sendAndWait(text)
  return result?.final_text ?? status
}

export async function follow(): Promise<void> {
  for await (const event of conversation.events({ types: ['ToolUse', 'ToolResult'] })) {
    if (event.type === 'ToolUse') show(event.name)
    else show(String(event.is_error))
    // @ts-expect-error -- not among the requested types
    if (event.type === 'Result') return
  }
}

export async function list(): Promise<void> {
  for await (const { id, title } of client.conversations.list({ limit: 10 })) show(id + (title ?? ''))
  const { items }: { items: Event[] } = await conversation.listEvents()
  show(items.map(({ type }) => type).join())
  // @ts-expect-error -- a typing mistake
  await client.conversations.create({ titel: 'x' })
  // @ts-expect-error -- not the text of a message
  await conversation.send(42)
}

function show(text: string): void {
  console.log(text)
}

const errors = await Promise.all(
  [conversation.get(), verifyWebhook({ body: '{}', headers: {} }, 'whsec_AAAA')].map((promise) =>
    promise.catch((error: unknown) => error),
  ),
)
if (!errors.every((error) => error instanceof AgentServerError)) throw errors[0]
show(errors.map((error) => (error instanceof AgentServerError ? error.code : '')).join(' '))
