/** Answers a message of the Model Context Protocol. Nothing is kept between two of them. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { McpServer } from '@modelcontextprotocol/server'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { keyEnded } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { closeSignal } from '../../http/request/close-signal.ts'
import { problemFor } from '../../http/request/problem-handler.ts'
import { agentTasks, placeOfTask } from './agent-tasks.ts'
import { agentTools } from './agent-tools.ts'
import type { McpDeps } from './served-agents.ts'
import { servedAgents } from './served-agents.ts'
import type { FollowedTasks } from './task-subscription.ts'
import { answerListen, readListenToTasks } from './task-subscription.ts'

/** Comments keep a connection open on which nothing happens, in milliseconds. */
const KEEP_ALIVE_MS = 15_000

export async function serveMcp(deps: McpDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { manager, version } = deps
  const signal = closeSignal(reply)
  const agents = servedAgents(deps, request, (release) => atEnd(signal, release))
  const explain = async (error: unknown) => {
    const id = request.conversationId
    const redact = id === undefined ? (text: string) => text : await manager.redactFor(id)
    const { code, message } = problemFor(error, request, redact)
    return `${code}: ${message}`
  }
  const options = { openAgents: async () => agents, version, hasProfiles: true, explain }
  return await answerMcp(request, reply, { createServer: () => agentTools(options), tasks: agentTasks(options) })
}

type Answerer = {
  readonly createServer: () => McpServer
  /** The tasks that a client can listen to; undefined: none. */
  readonly tasks?: FollowedTasks
}

/** Answers with the tools of a server that is made for this message. */
export async function answerMcp(
  request: FastifyRequest,
  reply: FastifyReply,
  { createServer, tasks }: Answerer,
): Promise<FastifyReply> {
  const { body } = request
  if (Array.isArray(body)) throw new Problem('invalid_request', 'Send one message at a time: batches are not accepted.')
  if (body === undefined) throw new Problem('invalid_request', 'The body must be a message of JSON-RPC.')
  const signal = closeSignal(reply)
  // No list of a server changes: a subscription to them ends at once.
  const handler = createMcpHandler(createServer, { maxSubscriptions: 1, keepAliveMs: KEEP_ALIVE_MS })
  atEnd(signal, () => void handler.close())
  const message = new Request('http://localhost/mcp', {
    method: 'POST',
    headers: headersOf(request),
    signal,
  })
  const response = await handler.fetch(message, { parsedBody: body })
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  if (!isStream) return await reply.send(response)
  void reply.header('x-accel-buffering', 'no').header('cache-control', 'no-cache, no-transform')
  // The handler has accepted it, and knows no tasks.
  const listen = tasks && readListenToTasks(body)
  const answerStream = listen ? answerListen(listen, tasks, signal) : response
  return await reply.send(new Response(answerStream.body?.pipeThrough(ending(request)), answerStream))
}

/** Ends what the end of the key has cut off with an error: the client would wait for the answer. */
const ending = (request: FastifyRequest): TransformStream<Uint8Array, Uint8Array> =>
  new TransformStream({
    flush(controller) {
      if (!accessOf(request).ended.aborted) return
      const frame = `event: message\ndata: ${JSON.stringify(rpcErrorOf(keyEnded(), request))}\n\n`
      controller.enqueue(new TextEncoder().encode(frame))
    },
  })

function atEnd(signal: AbortSignal, run: () => void): void {
  if (signal.aborted) run()
  else signal.addEventListener('abort', run, { once: true })
}

/** What the protocol reads of a request. */
const isRead = (name: string): boolean => name === 'accept' || name === 'content-type' || name.startsWith('mcp-')

const headersOf = ({ headers }: FastifyRequest): Headers =>
  new Headers(
    Object.entries(headers).flatMap(([name, value]): [string, string][] =>
      isRead(name) && typeof value === 'string' ? [[name, value]] : [],
    ),
  )

const Call = z.object({
  method: z.literal('tools/call'),
  params: z.object({ arguments: z.object({ conversation_id: z.uuid().toLowerCase() }) }),
})
const OfTask = z.object({
  method: z.enum(['tasks/get', 'tasks/cancel', 'tasks/update']),
  params: z.object({ taskId: z.string() }),
})

/** The conversation that a message is about; undefined: of none, or a new one. */
export function conversationOfCall(body: unknown): string | undefined {
  const taskId = OfTask.safeParse(body).data?.params.taskId ?? readListenToTasks(body)?.params.notifications.taskIds[0]
  if (taskId !== undefined) return placeOfTask(taskId)?.conversationId
  return Call.safeParse(body).data?.params.arguments.conversation_id
}

/** The codes of JSON-RPC for errors of the transport. */
const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const INTERNAL_ERROR = -32_603
const REFUSED = -32_000

/** Errors before a tool begins: a status, and an error of JSON-RPC. */
export function sendRpcError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemFor(error, request)
  const { status } = problem
  const givenSeconds = problem.details?.['retry_after']
  const seconds = typeof givenSeconds === 'number' ? givenSeconds : status === 503 ? 1 : undefined
  if (seconds !== undefined) void reply.header('retry-after', seconds)
  if (status === 401) void reply.header('www-authenticate', 'Bearer realm="agent-server"').header('connection', 'close')
  return reply
    .code(status)
    .type('application/json')
    .send(JSON.stringify(rpcErrorOf(problem, request)))
}

function rpcErrorOf({ code, message }: Problem, { body }: FastifyRequest): object {
  const rpcCode =
    code === 'invalid_request'
      ? body === undefined
        ? PARSE_ERROR
        : INVALID_REQUEST
      : code === 'internal'
        ? INTERNAL_ERROR
        : REFUSED
  return { jsonrpc: '2.0', error: { code: rpcCode, message, data: { error: code } }, id: idOf(body) }
}

const RequestHead = z.object({ id: z.union([z.string(), z.number()]) })
const idOf = (body: unknown): string | number | null => RequestHead.safeParse(body).data?.id ?? null
