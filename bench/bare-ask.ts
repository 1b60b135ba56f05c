/** How a bare loop asks the model: through `node:http`, or through the `openai` package. */
import { once } from 'node:events'
import http from 'node:http'
import type { IncomingMessage } from 'node:http'

export type Call = { id: string; type: 'function'; function: { name: string; arguments: string } }
export type Message =
  | { role: 'user'; content: string }
  | { role: 'assistant'; content: string | null; tool_calls?: Call[] }
  | { role: 'tool'; content: string; tool_call_id: string }

/** Calls `onText` with each piece of text. */
export type Ask = (messages: Message[], onText: (text: string) => void) => Promise<Message & { role: 'assistant' }>

const TOOL = {
  type: 'function' as const,
  function: { name: 'Bash', parameters: { type: 'object', properties: { command: { type: 'string' } } } },
}

export function askOverHttp(model: string): Ask {
  const agent = new http.Agent({ keepAlive: true })
  return async (messages, onText) => {
    const request = http.request(`${model}/chat/completions`, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json' },
    })
    request.end(JSON.stringify({ model: 'bench', stream: true, messages, tools: [TOOL] }))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.setEncoding('utf8')
    const answer = assemble(onText)
    let rest = ''
    for await (const piece of response) {
      const lines = (rest + (piece as string)).split('\n\n')
      rest = lines.pop()!
      for (const line of lines) {
        if (line === 'data: [DONE]') continue
        answer.add((JSON.parse(line.slice('data: '.length)) as { choices: [{ delta: Delta }] }).choices[0].delta)
      }
    }
    return answer.finish()
  }
}

export async function askThroughOpenai(model: string): Promise<Ask> {
  // The loop that does without it does not load it.
  const { OpenAI } = await import('openai')
  const client = new OpenAI({ apiKey: 'bench-model-key', baseURL: model, maxRetries: 0 })
  return async (messages, onText) => {
    const stream = await client.chat.completions.create({ model: 'bench', stream: true, messages, tools: [TOOL] })
    const answer = assemble(onText)
    for await (const { choices } of stream) answer.add(choices[0]!.delta as Delta)
    return answer.finish()
  }
}

type Delta = { content?: string; tool_calls?: (Call & { index: number })[] }

function assemble(onText: (text: string) => void) {
  const calls: Call[] = []
  let content = ''
  return {
    add(delta: Delta) {
      for (const { index, ...call } of delta.tool_calls ?? []) calls[index] = call
      if (delta.content === undefined) return
      content += delta.content
      onText(delta.content)
    },
    finish: () => ({
      role: 'assistant' as const,
      content: content || null,
      ...(calls.length && { tool_calls: calls }),
    }),
  }
}
