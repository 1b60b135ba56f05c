/**
 * The reference: the minimum that a Node process can do as an agent with subscribers. It calls the model over
 * `node:http`, runs each call with `bash -c`, and writes text to its subscribers; it stores nothing, checks nothing, and
 * forgets everything when it ends. Started with a directory it is durable: each message is on disk there before the
 * loop continues, as often per step as the server writes, and the calls of a conversation run in one bash. With `openai`
 * after the directory it asks through that package, as the server does.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Message } from './bare-ask.ts'
import { askOverHttp, askThroughOpenai } from './bare-ask.ts'
import { createDurableConversation } from './durable-conversation.ts'
import type { DurableConversation } from './durable-conversation.ts'

type Conversation = {
  readonly messages: Message[]
  readonly subscribers: Set<ServerResponse>
  readonly durable: Promise<DurableConversation> | undefined
}

const model = process.argv[2]!
const directory = process.argv[3]
const ask = process.argv[4] === 'openai' ? await askThroughOpenai(model) : askOverHttp(model)
const conversations = new Map<string, Conversation>()

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
    const { messages, subscribers } = conversation
    const answer = await ask(messages, (text) => {
      const frame = `data: ${JSON.stringify({ text })}\n\n`
      for (const subscriber of subscribers) subscriber.write(frame)
    })
    await keep(answer)
    if (!answer.tool_calls) return
    for (const call of answer.tool_calls) {
      const { command } = JSON.parse(call.function.arguments) as { command: string }
      const content = await (durable ? durable.bash(command) : bash(command))
      await keep({ role: 'tool', tool_call_id: call.id, content })
    }
  }
}

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
