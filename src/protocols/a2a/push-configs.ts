/** The addresses at which clients learn of a task: callbacks of its conversation, whose deliveries have the task. */
import { z } from 'zod'
import { CreateCallback } from '../../contract/callback.ts'
import type { Callback } from '../../contract/callback.ts'
import { parseField } from '../shared/fields.ts'
import { A2aError } from './a2a-error.ts'
import type { A2aCall } from './call.ts'
import { PushConfig } from './push-config.ts'
import { formatTaskId } from './task-id.ts'
import { contextOf, findTask, readTask } from './tasks.ts'
import type { FoundTask } from './tasks.ts'

const PROTOCOL = 'a2a'
/** The only events after which a task is at rest. */
const EVENTS: NonNullable<CreateCallback['events']> = ['StatusUpdate', 'Result']

const TaskParams = z.looseObject({ taskId: z.string().max(200) })
const ConfigParams = TaskParams.extend({ id: z.string().min(1).max(2000) })

type ShownConfig = { readonly id: string; readonly taskId: string; readonly url: string }

/** Throws a `Problem` for an address that callbacks cannot have. */
export function callbackFor({ url, token, authentication }: PushConfig): CreateCallback {
  const { scheme, credentials } = authentication ?? {}
  const headers = {
    ...(token !== undefined && { 'x-a2a-notification-token': token }),
    ...(credentials !== undefined && { authorization: `${scheme} ${credentials}` }),
  }
  return parseField(CreateCallback, { url, events: EVENTS, headers }, 'taskPushNotificationConfig')
}

/** One with the same id takes the place of the other. Those of tasks whose end was delivered go. */
export async function putPushConfig(task: FoundTask, config: PushConfig): Promise<ShownConfig> {
  const { conversation, start } = task
  const { webhooks } = conversation
  const request = callbackFor(config)
  await webhooks.check(request)
  const id = config.id ?? formatTaskId({ conversationId: conversation.id, start })
  for (const { callback, form } of webhooks.withForm(PROTOCOL)) {
    const isSame = form.start === start && form.id === id
    if (isSame || (form.start !== start && (await isDone(task, form.start, callback))))
      await webhooks.remove(callback.id)
  }
  const form = { protocol: PROTOCOL, id, start, context: contextOf(conversation) }
  const { url } = await webhooks.createWithForm(request, form, start - 1)
  return shownConfig(task, { id, url })
}

async function isDone({ conversation }: FoundTask, start: number, { cursor }: Callback): Promise<boolean> {
  const { projection } = await readTask({ conversation, start, runId: undefined })
  return projection.endSeq !== undefined && cursor >= projection.endSeq
}

/** Leaves out its secrets. */
const shownConfig = ({ conversation, start }: FoundTask, { id, url }: { id: string; url: string }): ShownConfig => ({
  id,
  taskId: formatTaskId({ conversationId: conversation.id, start }),
  url,
})

export async function createPushConfig(call: A2aCall): Promise<ShownConfig> {
  const config = parseField(PushConfig, call.params)
  return await putPushConfig(await taskOf(call), config)
}

export async function getPushConfig(call: A2aCall): Promise<ShownConfig> {
  const { id } = parseField(ConfigParams, call.params)
  const task = await taskOf(call)
  const config = configsOf(task).find(({ form }) => form.id === id)
  if (config) return shownConfig(task, { id, url: config.callback.url })
  throw new A2aError('TASK_NOT_FOUND', 'The task has no such push notification config.')
}

export async function listPushConfigs(call: A2aCall): Promise<object> {
  const task = await taskOf(call)
  return {
    configs: configsOf(task).map(({ callback, form }) => shownConfig(task, { id: form.id, url: callback.url })),
    nextPageToken: '',
  }
}

/** Deleted twice is deleted. */
export async function deletePushConfig(call: A2aCall): Promise<object> {
  const { id } = parseField(ConfigParams, call.params)
  const task = await taskOf(call)
  for (const { callback, form } of configsOf(task))
    if (form.id === id) await task.conversation.webhooks.remove(callback.id)
  return {}
}

async function taskOf({ deps, access, request, params }: A2aCall): Promise<FoundTask> {
  const task = await findTask(deps, access, parseField(TaskParams, params).taskId)
  request.conversationId = task.conversation.id
  return task
}

const configsOf = ({ conversation, start }: FoundTask) =>
  conversation.webhooks.withForm(PROTOCOL).filter(({ form }) => form.start === start)
