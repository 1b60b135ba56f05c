/** Does what a message asks for: begins a task, or continues one, with words or with answers to what waits. */
import type { Access } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { otherProfile } from '../../http/guards/create-or-find.ts'
import { findEarlier } from '../../state/idempotency.ts'
import { beginAlone } from '../shared/begin-alone.ts'
import { createRequestFor } from '../shared/create-request.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { findThread, profileOfThread } from '../shared/find-thread.ts'
import { openTentative, settleNew } from '../shared/settle-new.ts'
import type { A2aCall, A2aDeps } from './call.ts'
import { continueTask } from './continue-task.ts'
import type { SendParams } from './message-request.ts'
import { saidParts } from './message-request.ts'
import { checkPushConfig, putPushConfig } from './push-configs.ts'
import { contextOfMessage, keyOfMessage } from './task-id.ts'
import { contextOf, findTask } from './tasks.ts'
import type { FoundTask } from './tasks.ts'

/** Throws a `Problem` or an `A2aError`, and then nothing has changed. */
export async function beginTask(call: A2aCall, params: SendParams): Promise<FoundTask> {
  const { message } = params
  const parts = saidParts(message.parts)
  const mark = markOf(call, params)
  if (message.taskId !== undefined) return await continueNamed(call, params, { ...parts, mark })
  if (parts.answers.length > 0) throw invalid('message.taskId', 'is needed to answer what a task waits for')
  if (parts.content.length === 0) throw invalid('message.parts', 'must say something')
  const input = parseField(UserInput, { role: 'user', content: parts.content }, 'message', 'parts')
  const { conversation, isNew } = await contextFor(call, params)
  call.request.conversationId = conversation.id
  let hasBegun = false
  try {
    const task = await alone(conversation, async (): Promise<FoundTask> => {
      const earlier = findEarlier(conversation.state.postedKeys, mark, Date.now())
      if (!earlier) refuseBusy(conversation)
      await checkPush(conversation, earlier?.answer.seq, params)
      const request = { message: input, run: true }
      const { seq, run_id } = earlier?.answer ?? (await conversation.post(request, mark, { clientMessage: mark }))
      return await withPush({ conversation, start: seq, runId: run_id }, params)
    })
    hasBegun = true
    return task
  } finally {
    if (isNew) await settleNew(call.deps, conversation, { hasBegun })
  }
}

/** Its key is forgotten after a day, its id never. */
const markOf = ({ request }: A2aCall, { message }: SendParams) => ({
  id: message.messageId,
  key: keyOfMessage(message.messageId),
  ...request.server.hashBody('a2a message', message.parts),
})

/** One request at a time begins a turn. */
async function alone<T>(conversation: Conversation, act: () => Promise<T>): Promise<T> {
  const release = beginAlone(conversation.id)
  if (!release) throw busy()
  try {
    return await act()
  } finally {
    release()
  }
}

const busy = () =>
  new Problem('conversation_running', 'The context is busy with a task. Wait for its end, or send its taskId.', {
    details: { retry_after: 1 },
  })

function refuseBusy({ state, requests }: Conversation): void {
  if (state.status === 'running') throw busy()
  if (requests.list().length > 0)
    throw new Problem('waiting_for_input', 'A task of the context waits for an answer. Send its taskId, or cancel it.')
}

/** The conversation of the context that a message names, which the first one makes. */
async function contextFor(
  { deps, access }: A2aCall,
  { message, metadata }: SendParams,
): Promise<{ readonly conversation: Conversation; readonly isNew: boolean }> {
  const externalId = message.contextId ?? contextOfMessage(message.messageId)
  const thread = await findThread(deps, access, externalId)
  const isOther = metadata?.profile && thread && profileOfThread(thread) !== metadata.profile
  if (isOther) throw otherProfile()
  if (thread) return { conversation: thread, isNew: false }
  const profile = metadata?.profile ?? (await profileFor(deps, access))
  const fields = { profile, tools: [], metadata: undefined, instructions: undefined, externalId }
  const wish = await createRequestFor(deps, access, fields)
  return await openTentative(deps, access, wish)
}

/** The profile of a message that names none: `default`, or the only one that the key may use. */
async function profileFor({ profiles }: A2aDeps, { limits }: Access): Promise<string> {
  const names = (await (await profiles()).names((name) => limits.profiles?.has(name) ?? true)).map(({ name }) => name)
  const [only = 'default', ...others] = names
  return others.length === 0 ? only : 'default'
}

const pushConfigIn = ({ configuration }: SendParams) => configuration?.taskPushNotificationConfig

async function checkPush(conversation: Conversation, start: number | undefined, params: SendParams): Promise<void> {
  const config = pushConfigIn(params)
  if (config) await checkPushConfig(conversation, start, config)
}

/** Returns the task, whose changes are delivered to the client. */
async function withPush(task: FoundTask, params: SendParams): Promise<FoundTask> {
  const config = pushConfigIn(params)
  if (config) await putPushConfig(task, config)
  return task
}

type Continuation = Parameters<typeof continueTask>[2]

async function continueNamed(
  { deps, request, access }: A2aCall,
  params: SendParams,
  continuation: Continuation,
): Promise<FoundTask> {
  const { taskId = '', contextId } = params.message
  const task = await findTask(deps, access, taskId)
  const { conversation } = task
  request.conversationId = conversation.id
  if (contextId !== undefined && contextId !== contextOf(conversation) && contextId !== conversation.id)
    throw invalid('message.contextId', 'is not the context of this task')
  return await alone(conversation, async () => {
    await checkPush(conversation, task.start, params)
    return await withPush(await continueTask(task, access, continuation), params)
  })
}
