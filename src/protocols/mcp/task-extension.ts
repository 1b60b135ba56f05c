/**
 * The Tasks extension of the Model Context Protocol (SEP-2663): a tool may answer with a task, which the client polls.
 * Owns the methods and their errors. What a task is, its caller decides.
 */
import type { CallToolResult, McpServer } from '@modelcontextprotocol/server'
import { MissingRequiredClientCapabilityError, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import { z } from 'zod'

const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks'

export const TASKS_CAPABILITY = { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } }

type TaskHead = {
  readonly taskId: string
  /** ISO 8601. */
  readonly createdAt: string
  readonly lastUpdatedAt: string
  /** Milliseconds after which it may be forgotten; null: never. */
  readonly ttlMs: number | null
  readonly pollIntervalMs: number
  readonly statusMessage?: string
}
export type WorkingTask = TaskHead & { readonly status: 'working' }
type TaskEnd =
  | { readonly status: 'completed'; readonly result: CallToolResult }
  | { readonly status: 'failed'; readonly error: { readonly code: number; readonly message: string } }
  | { readonly status: 'input_required'; readonly inputRequests: Readonly<Record<string, object>> }
  | { readonly status: 'cancelled' }
export type McpTask = WorkingTask | (TaskHead & TaskEnd)

/** Each throws `unknownTask` for a task that does not exist. */
export type McpTasks = {
  readonly get: (taskId: string) => Promise<McpTask>
  /** Asks it to end. Does nothing to a task that has ended. */
  readonly cancel: (taskId: string) => Promise<void>
  /** Takes answers by the key of what is asked. Ignores those that nobody waits for. */
  readonly update: (taskId: string, responses: Readonly<Record<string, unknown>>) => Promise<void>
}

export const unknownTask = (message = 'There is no task with this id.'): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message)

/** The part of the context of a request that says what its client can do. */
export type DeclaringRequest = { readonly envelope?: Readonly<Record<string, unknown>> | undefined }

const PollingClient = z.object({
  'io.modelcontextprotocol/clientCapabilities': z.object({
    extensions: z.object({ [TASKS_EXTENSION]: z.looseObject({}) }),
  }),
})

/** Whether the client of a request declares with it that it can poll tasks. Only then may a tool answer with one. */
export const pollsTasks = ({ envelope }: DeclaringRequest): boolean => PollingClient.safeParse(envelope).success

/** Returns what a tool answers instead of its result. `result` satisfies the schema of the tool. */
export const taskResult = <T extends CallToolResult>(result: T, task: WorkingTask) => ({
  ...result,
  ...task,
  resultType: 'task',
})

/** The SDK completes results of calls, but not those in a task. */
export const taskShown = (task: McpTask) =>
  task.status === 'completed' ? { ...task, result: { ...task.result, resultType: 'complete' } } : task

const Name = z.looseObject({ taskId: z.string() })

/** Call it before the server is connected. */
export function serveTasks({ server }: McpServer, tasks: McpTasks): void {
  server.registerCapabilities({ extensions: { [TASKS_EXTENSION]: {} } })
  server.setRequestHandler('tasks/get', { params: Name }, async ({ taskId }, { mcpReq }) => {
    requirePolling(mcpReq)
    return taskShown(await tasks.get(taskId))
  })
  server.setRequestHandler('tasks/cancel', { params: Name }, async ({ taskId }, { mcpReq }) => {
    requirePolling(mcpReq)
    await tasks.cancel(taskId)
    return {}
  })
  server.setRequestHandler('tasks/update', { params: Name }, async ({ taskId }, { mcpReq }) => {
    requirePolling(mcpReq)
    // The SDK takes them out of the parameters.
    const { inputResponses } = mcpReq
    if (!inputResponses) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'inputResponses is missing.')
    await tasks.update(taskId, inputResponses)
    return {}
  })
}

function requirePolling(request: DeclaringRequest): void {
  if (pollsTasks(request)) return
  throw new MissingRequiredClientCapabilityError(TASKS_CAPABILITY)
}
