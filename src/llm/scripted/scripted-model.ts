/**
 * A model server that follows a script, over real HTTP on loopback, for the demo and tests. The path of a request
 * selects the API that it speaks.
 */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises'
import { pickTurn } from './script.ts'
import type { Script, ScriptedQuestion, ScriptedTurn } from './script.ts'
import type { ScriptedApi } from './scripted-api.ts'
import { CHAT_COMPLETIONS } from './chat-answer.ts'
import { MESSAGES } from './messages-answer.ts'
import { RESPONSES } from './responses-answer.ts'

/** Requests kept for inspection; a demo may run for weeks. */
const MAX_KEPT_REQUESTS = 1000

const APIS: readonly ScriptedApi[] = [CHAT_COMPLETIONS, MESSAGES, RESPONSES]

export type ScriptedRequest = ScriptedQuestion & {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Identifies the connection. */
  readonly clientPort: number | undefined
  /** True if the client closed before the answer was complete; false until then. */
  readonly closedEarly: boolean
}

export type ScriptedModel = {
  /** A value for `llm_config.base_url`. */
  readonly baseUrl: string
  /** The latest requests, oldest first. */
  readonly requests: readonly ScriptedRequest[]
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export async function startScriptedModel(script: Script, { port = 0 } = {}): Promise<ScriptedModel> {
  const requests: ScriptedRequest[] = []
  const attempts = new Map<string, number>()

  async function complete(api: ScriptedApi, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readText(request)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- requests come from our own client and from tests
    const body = JSON.parse(text) as ScriptedQuestion['body']
    const record = {
      path: request.url ?? '',
      headers: request.headers,
      clientPort: request.socket.remotePort,
      text,
      body,
      messages: api.messagesOf(body),
      attempt: countAttempt(attempts, text),
      closedEarly: false,
    }
    requests.push(record)
    if (requests.length > MAX_KEPT_REQUESTS) requests.shift()
    const closing = new AbortController()
    response.on('close', () => {
      record.closedEarly = !response.writableFinished && !closing.signal.aborted
      closing.abort()
    })
    const fault = api.faultIn?.(body)
    if (fault !== undefined) return sendJson(response, 400, api.errorBody(fault))
    await play(api, await pickTurn(script, record), { request: record, response, closed: closing })
  }

  const server = createServer((request, response) => {
    const path = request.url?.replace(/\?.*/, '') ?? ''
    if (path.endsWith('/models'))
      return sendJson(response, 200, { object: 'list', data: [{ id: 'scripted', object: 'model' }] })
    const api = APIS.find((each) => path.endsWith(each.path))
    if (!api) return sendJson(response, 404, { error: { message: `${path} does not exist` } })
    complete(api, request, response).catch((error: unknown) => {
      if (!response.headersSent) sendJson(response, 400, { error: { message: String(error) } })
      else response.destroy()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens, and not on a path
  const { port: boundPort } = server.address() as AddressInfo

  async function close(): Promise<void> {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { baseUrl: `http://127.0.0.1:${boundPort}/v1`, requests, close, [Symbol.asyncDispose]: close }
}

function countAttempt(attempts: Map<string, number>, text: string): number {
  const key = createHash('sha256').update(text).digest('base64')
  const attempt = attempts.get(key) ?? 0
  attempts.delete(key)
  attempts.set(key, attempt + 1)
  const [oldest] = attempts.keys()
  if (attempts.size > MAX_KEPT_REQUESTS && oldest !== undefined) attempts.delete(oldest)
  return attempt
}

type Exchange = {
  readonly request: ScriptedRequest
  readonly response: ServerResponse
  readonly closed: AbortController
}

async function play(api: ScriptedApi, turn: ScriptedTurn, { request, response, closed }: Exchange): Promise<void> {
  const { signal } = closed
  // The small chunks are intended: send each without delay.
  response.socket?.setNoDelay(true)
  await pause(turn.delay_ms, signal)
  if (turn.status !== undefined && turn.raw === undefined) {
    return sendJson(response, turn.status, api.errorBody(turn.error ?? { message: 'scripted' }), turn.headers)
  }
  if (turn.plain || (request.body['stream'] !== true && turn.raw === undefined)) {
    return sendJson(response, 200, api.wholeAnswer(turn, request), turn.headers)
  }
  response.writeHead(turn.status ?? 200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    ...turn.headers,
  })
  response.flushHeaders()
  let sentCount = 0
  for (const piece of turn.raw ?? api.chunksOf(turn, request)) {
    await pause(turn.chunk_delay_ms, signal)
    if (sentCount++ === turn.cut_after) break
    if (signal.aborted) return
    if (!response.write(piece)) await drain(response)
  }
  if (turn.cut_after !== undefined) {
    closed.abort()
    return void response.destroy()
  }
  if (!turn.hang) response.end()
}

function drain(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      response.off('drain', finish).off('close', finish)
      resolve()
    }
    response.once('drain', finish).once('close', finish)
  })
}

async function pause(ms: number | undefined, signal: AbortSignal): Promise<void> {
  // One chunk is sent per tick if there is no delay, otherwise all of them would reach the client as one.
  if (!ms) return nextTick()
  // If the client has disconnected, do not send the rest of the turn.
  await sleep(ms, undefined, { signal }).catch(() => undefined)
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a stream without an encoding
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}

function sendJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
