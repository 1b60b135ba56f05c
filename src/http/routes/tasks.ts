/** Routes for tasks: post, list, get and cancel. */
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { ConversationId } from '../../contract/conversation.ts'
import { PostTask, Task, TaskPage, ListTasks } from '../../contract/values/task.ts'
import type { ConversationManager } from '../../conversations/manager.ts'
import { KeyHeader, idempotencyOf } from '../request/idempotency-key.ts'
import { describeRoute } from '../openapi/describe-route.ts'
import { accessOf } from '../guards/authorize.ts'
import { mayPostTask, taskFor } from '../guards/limited-requests.ts'
import { ById, CONVERSATION } from '../openapi/conversation-params.ts'

const OneTask = z.strictObject({ id: ConversationId, task_id: z.uuid().toLowerCase() })

export const taskRoutes: FastifyPluginAsyncZod<{ manager: ConversationManager }> = async (app, { manager }) => {
  const describe = describeRoute('tasks')

  app.post(
    '/conversations/:id/tasks',
    {
      schema: {
        ...describe('postTask', 'Create a task: a run of the agent, a command or a Ticker', [
          ...CONVERSATION,
          'conversation_from_newer_version',
          'limit_reached',
          'conversation_changed',
          'idempotency_mismatch',
          'storage_full',
        ]),
        params: ById,
        headers: KeyHeader,
        body: PostTask,
        response: { 201: Task.describe('The task as it was created: `pending`.') },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      mayPostTask(accessOf(request), request.body)
      const { tasks } = await manager.open(id)
      const task = await tasks.post(request.body, idempotencyOf(request))
      return reply.code(201).header('location', `/conversations/${id}/tasks/${task.id}`).send(task)
    },
  )

  app.get(
    '/conversations/:id/tasks',
    {
      schema: {
        ...describe('listTasks', 'List tasks', [...CONVERSATION, 'invalid_cursor']),
        params: ById,
        querystring: ListTasks,
        response: { 200: TaskPage },
      },
    },
    async (request) => (await manager.open(request.params.id)).tasks.list(request.query),
  )

  app.get(
    '/conversations/:id/tasks/:task_id',
    {
      schema: {
        ...describe('getTask', 'Get a task', [...CONVERSATION, 'task_not_found']),
        params: OneTask,
        response: { 200: Task },
      },
    },
    async (request) => (await manager.open(request.params.id)).tasks.get(request.params.task_id),
  )

  app.delete(
    '/conversations/:id/tasks/:task_id',
    {
      schema: {
        ...describe('cancelTask', 'Cancel a task; an ended task is not changed', [
          ...CONVERSATION,
          'task_not_found',
          'storage_full',
        ]),
        params: OneTask,
        response: { 200: Task.describe('The task after it has ended. A key without `read` gets no `result`.') },
      },
    },
    async (request) => {
      const { tasks } = await manager.open(request.params.id)
      return taskFor(accessOf(request), await tasks.cancel(request.params.task_id))
    },
  )
}
