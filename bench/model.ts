/**
 * A model server for measurements. It runs in a separate process, so that nothing else shares its thread: it answers at once with
 * what the plan in the user's last message asks for, and notes when each request came and when its answer was out.
 */
import { once } from 'node:events'
import http from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as yieldToLoop, setTimeout as sleep } from 'node:timers/promises'
import type { Exchange, ModelReport, Plan } from './model-process.ts'

type Message = { readonly role: string; readonly content?: unknown; readonly tool_calls?: readonly unknown[] }

let exchanges: Exchange[] = []

const server = http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const came = now()
  answer(request, response)
    .then(() => exchanges.push({ came, ended: now() }))
    .catch((error: unknown) => response.destroy(error as Error))
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
report({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` })
process.on('message', () => {
  report({ exchanges })
  exchanges = []
})
// The measuring process is gone.
process.on('disconnect', () => process.exit())

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const { messages } = JSON.parse(Buffer.concat(parts).toString()) as { messages: Message[] }
  const start = messages.findLastIndex(({ role }) => role === 'user')
  const plan = readPlan(messages[start])
  const taken = messages.slice(start).filter((message) => message.tool_calls?.length).length
  response.socket?.setNoDelay(true)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const say = (delta: object, finish_reason: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason }]
    return response.write(`data: ${JSON.stringify({ object: 'chat.completion.chunk', choices })}\n\n`)
  }
  if (taken < (plan.steps ?? 0)) {
    // Another command each time: an agent that repeats one without end is stopped.
    if (plan.thinkMs) await sleep(plan.thinkMs)
    const command = plan.writes ? `echo ${start}-${taken} >written` : `true ${taken}`
    const call = { name: 'Bash', arguments: JSON.stringify({ command }) }
    say({
      role: 'assistant',
      tool_calls: [{ index: 0, id: `call_${start}_${taken}`, type: 'function', function: call }],
    })
    say({}, 'tool_calls')
  } else {
    await talk(plan, say)
    say({}, 'stop')
  }
  response.end('data: [DONE]\n\n')
}

/** Each piece says which it is and when it went out. Models send one in a packet: Node joins what is written in one turn. */
async function talk({ pieces = 1, gapMs = 0 }: Plan, say: (delta: object) => void): Promise<void> {
  for (let i = 0; i < pieces; i++) {
    say({ content: `${i}@${now()};` })
    await (gapMs ? sleep(gapMs) : yieldToLoop())
  }
}

function readPlan(message: Message | undefined): Plan {
  const { content } = message ?? {}
  const text = typeof content === 'string' ? content : (content as { text: string }[])[0]!.text
  return JSON.parse(text) as Plan
}

/** Milliseconds on the clock that all processes of the machine share. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function report(message: ModelReport): void {
  process.send!(message)
}
