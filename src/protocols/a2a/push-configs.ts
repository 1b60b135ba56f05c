/** The addresses at which clients learn of a task: callbacks of its conversation, whose deliveries have the task. */
import { z } from 'zod'
import { CreateCallback } from '../../contract/callback.ts'
import type { Callback } from '../../contract/callback.ts'
import { Problem } from '../../contract/problem.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { parseField } from '../shared/fields.ts'
import { A2aError } from './a2a-error.ts'
import type { A2aCall } from './call.ts'
import { PushConfig } from './push-config.ts'
import { formatTaskId } from './task-id.ts'
import type { TaskId } from './task-id.ts'
import { contextOf, findTask, readTask } from './tasks.ts'
import type { FoundTask } from './tasks.ts'

const PROTOCOL = 'a2a'
/** The only events after which a task is at rest. A subagent in the background may ask after the end. */
const EVENTS: NonNullable<CreateCallback['events']> = ['StatusUpdate', 'Result', 'RequestOpened']

const TaskParams = z.looseObject({ taskId: z.string().max(200) })
const ConfigParams = TaskParams.extend({ id: z.string().min(1).max(2000) })

type ShownConfig = { readonly id: string; readonly taskId: string; readonly url: string }

/** Throws a `Problem` for an address that callbacks cannot have. */
function callbackFor({ url, token, authentication }: PushConfig): CreateCallback {
  const { scheme, credentials } = authentication ?? {}
  const headers = {
    ...(token !== undefined && { 'x-a2a-notification-token': token }),
    ...(credentials !== undefined && { authorization: `${scheme} ${credentials}` }),
  }
  return parseField(CreateCallback, { url, events: EVENTS, headers }, 'taskPushNotificationConfig')
}

/** Throws a `Problem` if the config could not be put. Changes nothing. `start`: of the task; undefined: it has not begun. */
export async function checkPushConfig(
  conversation: Conversation,
  start: number | undefined,
  config: PushConfig,
): Promise<void> {
  const request = callbackFor(config)
  await conversation.webhooks.check(request, (await replacedBy(conversation, start, config)).length)
}

/**
 * Replaces the config with the same id, if any; at the same address, it continues after what was delivered. Configs of tasks
 * whose end was delivered are removed.
 */
export async function putPushConfig(task: FoundTask, config: PushConfig): Promise<ShownConfig> {
  const { conversation, start } = task
  const { webhooks } = conversation
  const request = callbackFor(config)
  const { url, headers } = request
  const replacedIds = await replacedBy(conversation, start, config)
  await webhooks.check(request, replacedIds.length)
  const id = idOf(config, { conversationId: conversation.id, start })
  const same = configsOf(task).find(({ callback, form }) => form.id === id && callback.url === url)?.callback
  for (const replacedId of replacedIds) if (replacedId !== same?.id) await webhooks.remove(replacedId)
  const form = { protocol: PROTOCOL, id, start, context: contextOf(conversation) }
  if (same) await webhooks.update(same.id, { headers, enabled: true })
  else await webhooks.createWithForm(request, form, start - 1)
  return shownConfig({ conversation, start }, { id, url })
}

const idOf = ({ id }: PushConfig, task: TaskId): string => id ?? formatTaskId(task)

/** Returns the ids of their callbacks. */
async function replacedBy(
  conversation: Conversation,
  start: number | undefined,
  config: PushConfig,
): Promise<readonly string[]> {
  const replacedIds: string[] = []
  for (const { callback, form } of conversation.webhooks.withForm(PROTOCOL)) {
    const isReplaced =
      form.start === start
        ? form.id === idOf(config, { conversationId: conversation.id, start })
        : await isDone(conversation, form.start, callback)
    if (isReplaced) replacedIds.push(callback.id)
  }
  return replacedIds
}

/** True also if the message that the task began with was withdrawn: nothing of it can be read. */
async function isDone(conversation: Conversation, start: number, { cursor }: Callback): Promise<boolean> {
  try {
    const { projection } = await readTask({ conversation, start })
    return projection.endSeq !== undefined && cursor >= projection.endSeq
  } catch (error) {
    if (error instanceof Problem) return true
    throw error
  }
}

/** Leaves out its secrets. */
const shownConfig = (
  { conversation, start }: Pick<FoundTask, 'conversation' | 'start'>,
  { id, url }: { id: string; url: string },
): ShownConfig => ({
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
