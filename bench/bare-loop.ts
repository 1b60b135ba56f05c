/**
 * The reference: the minimum that a Node process can do as an agent with subscribers. It calls the model over
 * `node:http`, runs each call with `bash -c`, and writes text to its subscribers; it stores nothing, checks nothing, and
 * forgets everything when it ends. Started with a directory it is durable: each message is on disk there before the
 * loop continues, as often per step as the server writes, and the calls of a conversation run in one bash.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createDurableConversation } from './durable-conversation.ts'
import type { DurableConversation } from './durable-conversation.ts'

type Call = { id: string; type: 'function'; function: { name: string; arguments: string } }
type Message =
  | { role: 'user' | 'assistant'; content: string | null; tool_calls?: Call[] }
  | { role: 'tool'; content: string; tool_call_id: string }
type Conversation = {
  readonly messages: Message[]
  readonly subscribers: Set<ServerResponse>
  readonly durable: Promise<DurableConversation> | undefined
}

const model = process.argv[2]!
const directory = process.argv[3]
const agent = new http.Agent({ keepAlive: true })
const conversations = new Map<string, Conversation>()
const TOOL = {
  type: 'function',
  function: { name: 'Bash', parameters: { type: 'object', properties: { command: { type: 'string' } } } },
}

const server = http.createServer((request, response) => {
  serve(request, response).catch((error: unknown) => response.destroy(error as Error))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
process.on('disconnect', () => process.exit())

/** `GET /id` subscribes, `POST /id` runs a message to its end. */
async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const id = request.url!
  let conversation = conversations.get(id)
  if (!conversation) {
    const durable = directory === undefined ? undefined : createDurableConversation(directory + id)
    conversation = { messages: [], subscribers: new Set(), durable }
    conversations.set(id, conversation)
  }
  if (request.method === 'POST') {
    await run(conversation, await textOf(request))
    return void response.end('{}')
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  conversation.subscribers.add(response)
  response.on('close', () => conversation.subscribers.delete(response))
}

async function run(conversation: Conversation, text: string): Promise<void> {
  const durable = await conversation.durable
  const keep = async (message: Message) => {
    await durable?.store(message)
    conversation.messages.push(message)
  }
  await keep({ role: 'user', content: text })
  for (;;) {
    const answer = await ask(conversation)
    await keep(answer)
    if (!answer.tool_calls) return
    for (const call of answer.tool_calls) {
      const { command } = JSON.parse(call.function.arguments) as { command: string }
      const content = await (durable ? durable.bash(command) : bash(command))
      await keep({ role: 'tool', tool_call_id: call.id, content })
    }
  }
}

async function ask({ messages, subscribers }: Conversation) {
  const request = http.request(`${model}/chat/completions`, {
    method: 'POST',
    agent,
    headers: { 'content-type': 'application/json' },
  })
  request.end(JSON.stringify({ model: 'bench', stream: true, messages, tools: [TOOL] }))
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.setEncoding('utf8')
  const calls: Call[] = []
  let content = ''
  let rest = ''
  for await (const piece of response) {
    const lines = (rest + (piece as string)).split('\n\n')
    rest = lines.pop()!
    for (const line of lines) {
      if (line === 'data: [DONE]') continue
      const { delta } = (JSON.parse(line.slice('data: '.length)) as { choices: [{ delta: Delta }] }).choices[0]
      for (const { index, ...call } of delta.tool_calls ?? []) calls[index] = call
      if (delta.content === undefined) continue
      content += delta.content
      const frame = `data: ${JSON.stringify({ text: delta.content })}\n\n`
      for (const subscriber of subscribers) subscriber.write(frame)
    }
  }
  return { role: 'assistant' as const, content: content || null, ...(calls.length && { tool_calls: calls }) }
}

type Delta = { content?: string; tool_calls?: (Call & { index: number })[] }

async function bash(command: string): Promise<string> {
  const child = spawn('bash', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => (output += piece.toString()))
  await once(child, 'close')
  return output
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString()
}
