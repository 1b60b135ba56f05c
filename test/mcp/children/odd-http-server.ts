/** An MCP server with a URL that misbehaves as the path of its address says. Speaks the protocol by hand. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'

export type SeenRequest = { readonly mode: string; readonly method: string; readonly call: string | undefined }

export type OddHttpServer = AsyncDisposable & { readonly url: string; readonly seen: readonly SeenRequest[] }

type Message = { id?: number | string; method?: string; params?: any; error?: unknown } // eslint-disable-line typescript/no-explicit-any

export async function startOddHttpServer(): Promise<OddHttpServer> {
  const seen: SeenRequest[] = []
  const forgotten = new Set<string>()
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const mode = request.url!.slice(1)
    const body = await text(request)
    const message = (body === '' ? {} : JSON.parse(body)) as Message
    seen.push({ mode, method: request.method!, call: message.method })
    if (request.method === 'DELETE') return response.writeHead(200).end()
    if (request.method === 'GET') return openStream(mode, response)
    if (message.method === 'initialize') forgotten.delete(mode)
    else if (forgotten.has(mode)) return response.writeHead(404).end('There is no such session.')
    if (mode === 'forgets' && message.method === 'tools/call' && seen.filter(isCallOf(mode)).length === 1) {
      forgotten.add(mode)
      return response.writeHead(404).end('There is no such session.')
    }
    handle(mode, message, { request, response })
  }
  const server = createServer((request, response) => void take(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const isCallOf = (wanted: string) => (each: SeenRequest) => each.mode === wanted && each.call === 'tools/call'

const event = (message: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`

function openStream(mode: string, response: ServerResponse): unknown {
  if (mode !== 'reopens' && mode !== 'pings') return response.writeHead(405).end()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (mode === 'reopens') return response.end('retry: 0\nid: 1\ndata: \n\n')
  // Its pings must be answered, but it does not take the answers.
  for (let at = 0; at < 2000; at++) response.write(event({ id: `ping-${at}`, method: 'ping' }))
}

type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse }

function handle(mode: string, { id, method, params }: Message, { request, response }: Exchange): unknown {
  const json = (message: object, more = {}) =>
    response
      .writeHead(200, { 'content-type': 'application/json', ...more })
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...message }))
  const raw = (body: string) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${body}}`)
  const serverInfo = { name: 'odd', version: '1' }
  if (method === 'initialize') {
    const result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }
    return json({ result }, { 'mcp-session-id': `session-${mode}` })
  }
  if (method === 'tools/list') {
    if (mode === 'deep') return raw(`{"tools":[],"deep":${'['.repeat(1e6)}${']'.repeat(1e6)}}`)
    if (mode === 'wide') return raw(`{"tools":[],"wide":[${'{},'.repeat(1e6)}{}]}`)
    if (mode === 'packed')
      return response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(gzipSync('x'))
    return json({ result: { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] } })
  }
  if (method === 'tools/call') return answerCall(mode, { request, response }, json)
  if (method === undefined && mode === 'pings') return undefined
  return response.writeHead(202).end()
}

function answerCall(mode: string, { request, response }: Exchange, json: (message: object) => unknown): unknown {
  switch (mode) {
    case 'cuts':
    case 'cuts-resumable':
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return response.end(mode === 'cuts' ? ': nothing\n\n' : 'id: 1\nretry: 10\ndata: \n\n')
    case 'resets':
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return response.write(': nothing\n\n', () => response.destroy())
    case 'redirects':
      return response.writeHead(307, { location: 'http://169.254.169.254/latest' }).end()
    case 'echoes':
      return response.writeHead(500).end(JSON.stringify(request.headers).repeat(10_000))
    default:
      return json({ result: { content: [{ type: 'text', text: 'called' }] } })
  }
}
