/**
 * A bot that asks people before an agent does something, as a chat does: the server delivers what waits to a webhook,
 * the bot posts it to a channel, and the button that a person presses becomes the decision. A program on a terminal
 * stands in for the chat: what the bot posts is printed, and a line `allow ID` or `deny ID` is a button.
 *
 * Usage: AGENT_SERVER_URL=… AGENT_SERVER_KEY=… node examples/approval-bot.ts "Remove the old logs."
 */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createInterface } from 'node:readline'
import type { AskedPermission } from 'agent-server/client'
import { AgentServerError, createClient, verifyWebhook } from 'agent-server/client'

const [, , task = 'Remove the old logs.'] = process.argv
const { AGENT_SERVER_URL: baseUrl = 'http://127.0.0.1:8000', AGENT_SERVER_KEY: apiKey } = process.env
const client = createClient({ baseUrl, apiKey })
const { id } = await client.conversations.create({ title: task, permission_mode: 'default' })
const conversation = client.conversation(id)

let secret = ''
const waiting = new Map<string, AskedPermission>()
const delivered = new Set<string>()

const bot = createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    () => response.writeHead(500).end(), // the server delivers it again
  )
})
bot.listen(0, '127.0.0.1')
await once(bot, 'listening')
const { port } = bot.address() as AddressInfo
const url = `http://127.0.0.1:${port}/agent`
const callback = await conversation.callbacks.create({ url, events: ['RequestOpened', 'Result', 'ErrorEvent'] })
secret = callback.secret
const buttons = createInterface({ input: process.stdin }).on('line', (line) => void press(line))
await conversation.send(task)

/** Returns the status of the response. Anyone can send to this URL: only what the server has signed counts. */
async function receive(request: IncomingMessage): Promise<number> {
  const body = await text(request)
  const delivery = await verifyWebhook({ body, headers: request.headers }, secret).catch(refused)
  if (!delivery) return 401
  const { event } = delivery
  // Deliveries arrive at least once.
  if (delivered.has(event.id)) return 204
  delivered.add(event.id)
  if (event.type === 'RequestOpened' && event.kind === 'permission') ask(event)
  if (event.type === 'ErrorEvent') console.log(`failed: ${event.message}`)
  if (event.type === 'Result') finish(event.final_text)
  return 204
}

function refused(error: unknown): undefined {
  if (!(error instanceof AgentServerError && error.code === 'invalid_signature')) throw error
}

function ask(request: AskedPermission): void {
  waiting.set(request.request_id, request)
  const calls = request.payload.tool_uses.map(({ name, input }) => `${name} ${JSON.stringify(input)}`)
  console.log(`May the agent do this? ${request.request_id} ${calls.join('; ')}`)
}

async function press(line: string): Promise<void> {
  const [button, request_id = ''] = line.split(' ')
  const request = waiting.get(request_id)
  if (!request) return
  try {
    if (button === 'allow') await conversation.requests.allow(request)
    else await conversation.requests.deny(request, { message: 'A person has denied this.' })
    waiting.delete(request_id)
  } catch (error) {
    // Somebody else was faster, for example.
    console.log(error instanceof Error ? error.message : error)
  }
}

function finish(answer: string): void {
  console.log(`done: ${answer}`)
  buttons.close()
  bot.close()
  bot.closeIdleConnections()
}
