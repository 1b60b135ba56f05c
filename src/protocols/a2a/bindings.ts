/** The bindings of A2A: JSON-RPC, and HTTP with JSON. Both call the same operations. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Scope } from '../../contract/key.ts'
import { closeSignal } from '../../http/request/close-signal.ts'
import { findThreadId } from '../shared/find-thread.ts'
import { redactorOf } from '../shared/redactor-of.ts'
import { streamResponse } from '../shared/stream-response.ts'
import { A2aError, errorForms, rpcError, sendHttpProblem, sendRpcProblem } from './a2a-error.ts'
import type { RpcId } from './a2a-error.ts'
import { extendedCard } from './agent-card.ts'
import { callOf } from './call.ts'
import type { A2aCall, A2aDeps } from './call.ts'
import { accessOf } from '../../http/guards/authorize.ts'
import { listTasks } from './list-tasks.ts'
import { cancelTask, getTask, sendMessage, streamMessage, subscribe } from './operations.ts'
import type { EventLists } from './operations.ts'
import { createPushConfig, deletePushConfig, getPushConfig, listPushConfigs } from './push-configs.ts'
import { contextOfMessage, parseTaskId } from './task-id.ts'

type Operation = { readonly scopes: readonly Scope[] } & (
  | { readonly run: (call: A2aCall) => Promise<object> }
  | { readonly stream: (call: A2aCall) => EventLists }
)

// What the agent says is in the answers. Decisions need the scope `approve`, too.
const READ: readonly Scope[] = ['read']
const WRITE: readonly Scope[] = ['read', 'write']

/** The names are those of JSON-RPC. */
const OPERATIONS = {
  SendMessage: { scopes: WRITE, run: sendMessage },
  SendStreamingMessage: { scopes: WRITE, stream: streamMessage },
  GetTask: { scopes: READ, run: getTask },
  ListTasks: { scopes: READ, run: listTasks },
  CancelTask: { scopes: WRITE, run: cancelTask },
  SubscribeToTask: { scopes: READ, stream: subscribe },
  CreateTaskPushNotificationConfig: { scopes: WRITE, run: createPushConfig },
  GetTaskPushNotificationConfig: { scopes: READ, run: getPushConfig },
  ListTaskPushNotificationConfigs: { scopes: READ, run: listPushConfigs },
  DeleteTaskPushNotificationConfig: { scopes: WRITE, run: deletePushConfig },
  GetExtendedAgentCard: { scopes: READ, run: extendedCard },
} as const satisfies Record<string, Operation>

export type OperationName = keyof typeof OPERATIONS

const isOperation = (name: string): name is OperationName => Object.hasOwn(OPERATIONS, name)

const Rpc = z.looseObject({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string(), z.number()]),
  method: z.string(),
  params: z.looseObject({}).nullish(),
})

const idOf = (body: unknown): RpcId => Rpc.pick({ id: true }).safeParse(body).data?.id ?? null

export async function answerRpc(deps: A2aDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  requireVersion(request)
  if (request.body === undefined) throw new A2aError('PARSE_ERROR', 'The body must be a message of JSON-RPC.')
  const parseResult = Rpc.safeParse(request.body)
  if (!parseResult.success)
    throw new A2aError('INVALID_REQUEST', 'Send one request of JSON-RPC 2.0, with an id: batches are not accepted.')
  const { id, method, params } = parseResult.data
  if (!isOperation(method)) throw new A2aError('METHOD_NOT_FOUND', 'There is no such method in A2A 1.0.')
  const call = callOf(deps, request, { params: params ?? {}, signal: closeSignal(reply) })
  const toFrame = (result: unknown) => JSON.stringify({ jsonrpc: '2.0', id, result })
  const toErrorFrame = (error: unknown, redact: (text: string) => string) =>
    JSON.stringify(rpcError(errorForms(error, request, redact), id))
  return await perform(call, OPERATIONS[method], { reply, toFrame, toErrorFrame })
}

/** `params`: of the path and the query. */
export async function answerHttp(
  deps: A2aDeps,
  name: OperationName,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  requireVersion(request)
  const params = { ...Object(request.query), ...Object(request.body), ...Object(request.params) }
  const call = callOf(deps, request, { params, signal: closeSignal(reply) })
  const toErrorFrame = (error: unknown, redact: (text: string) => string) => ({
    type: 'error',
    ...errorForms(error, request, redact).http,
  })
  return await perform(call, OPERATIONS[name], { reply, toFrame: (result) => JSON.stringify(result), toErrorFrame })
}

/** A client that names no version speaks an older one. */
function requireVersion({ headers, query }: FastifyRequest): void {
  const version = headers['a2a-version'] ?? Object(query)['A2A-Version'] ?? ''
  if (typeof version === 'string' && /^1(?:\.\d{1,9}){0,2}$/.test(version.trim())) return
  throw new A2aError('VERSION_NOT_SUPPORTED', 'This server speaks A2A 1.0. Send the header A2A-Version: 1.0.')
}

type Frames = {
  readonly reply: FastifyReply
  readonly toFrame: (result: unknown) => string
  readonly toErrorFrame: (error: unknown, redact: (text: string) => string) => string | { readonly type: string }
}

async function perform(
  call: A2aCall,
  operation: Operation,
  { reply, toFrame, toErrorFrame }: Frames,
): Promise<FastifyReply> {
  const { request, signal, deps } = call
  call.access.require(...operation.scopes)
  if ('run' in operation) return await reply.type('application/json').send(toFrame(await operation.run(call)))
  const { stream } = operation
  let redact = (text: string) => text
  await streamResponse(
    { request, reply, signal },
    async function* () {
      for await (const events of stream(call)) {
        yield events.map(toFrame)
        redact = await redactorOf(deps, request)
      }
    },
    (error) => toErrorFrame(error, redact),
  )
  return reply
}

export async function sendRpcError(deps: A2aDeps, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  return sendRpcProblem(errorForms(error, request, await redactorOf(deps, request)), idOf(request.body), reply)
}

export async function sendHttpError(deps: A2aDeps, error: unknown, request: FastifyRequest, reply: FastifyReply) {
  return sendHttpProblem(errorForms(error, request, await redactorOf(deps, request)), reply)
}

const CallParams = z.looseObject({
  id: z.string().optional(),
  taskId: z.string().optional(),
  contextId: z.string().nullish(),
  message: z
    .looseObject({
      messageId: z.string().optional(),
      contextId: z.string().nullish(),
      taskId: z.string().nullish(),
    })
    .optional(),
})

/** The conversation that a request is about; undefined: of none, or a new one. */
export async function conversationOfCall(deps: A2aDeps, request: FastifyRequest): Promise<string | undefined> {
  const body = Object(request.body)
  const params = body['jsonrpc'] === undefined ? { ...Object(request.query), ...body } : body['params']
  const { id, taskId, contextId, message } = CallParams.safeParse(params).data ?? {}
  const task = message ? message.taskId : (taskId ?? id)
  if (task) return parseTaskId(task)?.conversationId
  const ofMessage = message?.contextId || (message?.messageId && contextOfMessage(message.messageId))
  const context = message ? ofMessage : contextId
  return context ? await findThreadId(deps, accessOf(request), context) : undefined
}
