/** Notifies a client that listens to tasks: of each one as it is now, and when it has ended. */
import { MissingRequiredClientCapabilityError } from '@modelcontextprotocol/server'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { McpTask, McpTasks } from './task-extension.ts'
import { pollsTasks, TASKS_CAPABILITY, taskShown } from './task-extension.ts'

export type FollowedTasks = McpTasks & {
  /** Resolves when it does not work any more, or cannot be followed now. Rejects when the signal is aborted. */
  readonly end: (taskId: string, signal: AbortSignal) => Promise<McpTask>
}

/** The client polls the others. */
const MAX_FOLLOWED = 64
/** Comments keep the connection open, in milliseconds. */
const KEEP_ALIVE_MS = 15_000
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId'

const Listen = z.object({
  id: z.union([z.string(), z.number()]),
  method: z.literal('subscriptions/listen'),
  params: z.object({
    _meta: z.record(z.string(), z.unknown()).optional(),
    notifications: z.object({ taskIds: z.array(z.string()).min(1) }),
  }),
})
export type ListenToTasks = z.infer<typeof Listen>

/** Undefined for any other message. */
export const readListenToTasks = (body: unknown): ListenToTasks | undefined => Listen.safeParse(body).data

export function answerListen({ id, params }: ListenToTasks, tasks: FollowedTasks, signal: AbortSignal): Response {
  if (!pollsTasks({ envelope: params._meta })) {
    const { code, message, data } = new MissingRequiredClientCapabilityError(TASKS_CAPABILITY)
    return Response.json({ jsonrpc: '2.0', id, error: { code, message, data } })
  }
  const taskIds = [...new Set(params.notifications.taskIds)].slice(0, MAX_FOLLOWED)
  const frames = framesOf({ id, taskIds, tasks, signal })
  return new Response(ReadableStream.from(frames).pipeThrough(new TextEncoderStream()), {
    headers: { 'content-type': 'text/event-stream' },
  })
}

type Subscription = {
  readonly id: string | number
  readonly taskIds: readonly string[]
  readonly tasks: FollowedTasks
  readonly signal: AbortSignal
}

/** Ends with the last of the tasks. */
async function* framesOf({ id, taskIds, tasks, signal }: Subscription): AsyncGenerator<string, void, void> {
  const _meta = { [SUBSCRIPTION_ID]: id }
  const notify = (method: string, params: object) => frameOf({ method, params: { ...params, _meta } })
  const foundTasks = await Promise.all(taskIds.map((taskId) => tasks.get(taskId).catch(() => undefined)))
  const knownTasks = foundTasks.filter((task) => task !== undefined)
  // A task that does not exist, or that the key does not see, is not among those that are agreed to.
  const agreement = knownTasks.length > 0 ? { taskIds: knownTasks.map(({ taskId }) => taskId) } : {}
  yield notify('notifications/subscriptions/acknowledged', { notifications: agreement })
  for (const task of knownTasks) yield notify('notifications/tasks', taskShown(task))
  const working = knownTasks.filter(({ status }) => status === 'working').map(({ taskId }) => taskId)
  const ends = new Map(working.map((taskId) => [taskId, endOf(tasks, taskId, signal)]))
  while (ends.size > 0) {
    const end = await firstOf([...ends.values()])
    if (end) ends.delete(end.taskId)
    if (!end) yield ': keep-alive\n\n'
    else if (end.task) yield notify('notifications/tasks', taskShown(end.task))
  }
  yield frameOf({ id, result: { resultType: 'complete', _meta } })
}

const frameOf = (message: object): string =>
  `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`

type FollowedEnd = { readonly taskId: string; readonly task: McpTask | undefined }

/** The task is undefined if it cannot be read any more: it is deleted, or the server stops. The client learns it when it polls. */
const endOf = async (tasks: FollowedTasks, taskId: string, signal: AbortSignal): Promise<FollowedEnd> => ({
  taskId,
  task: await tasks.end(taskId, signal).catch(() => undefined),
})

/** Undefined if none comes for a while. */
async function firstOf(ends: readonly Promise<FollowedEnd>[]): Promise<FollowedEnd | undefined> {
  const waiting = new AbortController()
  const tick = sleep(KEEP_ALIVE_MS, undefined, { signal: waiting.signal }).catch(() => undefined)
  try {
    return await Promise.race([...ends, tick])
  } finally {
    waiting.abort()
  }
}
