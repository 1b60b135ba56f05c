/** Begins what a request asks for: answers what waits and posts new messages, or finds the turn to show. */
import { isForPeople } from '../../contract/requests/request-forms.ts'
import { Problem } from '../../contract/problem.ts'
import type { OpenRequest } from '../../contract/request.ts'
import { AnswerRequest } from '../../contract/request.ts'
import type { RunOptions } from '../../contract/run.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { HashBody } from '../../security/body-hash.ts'
import type { PromptHooks } from '../../state/hook-decisions.ts'
import { findSubagent, isDetached } from '../../state/subagents.ts'
import { answerAs, mayAnswer } from '../shared/answer-as.ts'
import type { GivenAnswer } from '../shared/answer-as.ts'
import { ensureRun } from '../shared/ensure-run.ts'
import { beginAlone } from '../shared/begin-alone.ts'
import { optionsForTools, toolsUpdate, useTools } from '../shared/use-tools.ts'
import { keyOfMessage } from './ag-ui-event.ts'
import { answersToInterrupts } from './interrupts.ts'
import { lastTurnStart } from './last-turn.ts'
import type { NewMessages } from './new-messages.ts'
import { newMessagesOf } from './new-messages.ts'
import type { RunPost } from './run-post.ts'
import type { InputMessage, RunInput } from './run-input.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { frontendToolsOf, partsIn } from './run-input.ts'

/** `start`: seq of the first event of the turn. `through`: of what the client has said. `isReplay`: the client may have seen a part of it. */
export type BegunRun = {
  readonly start: number
  readonly through: number
  readonly isReplay: boolean
  readonly answeredCalls: ReadonlySet<string>
}

/** Throws a `Problem` if the conversation is busy, or waits for something that the request does not answer. */
export async function beginRun(conversation: Conversation, runPost: RunPost): Promise<BegunRun> {
  const release = beginAlone(conversation.id)
  try {
    const messages = await newMessagesOf(conversation, runPost)
    const answers = answersOf(conversation, runPost.input, messages)
    if (answers.length === 0 && messages.toPost.length === 0) return await replay(conversation)
    if (!release) throw busy()
    return await begin(conversation, runPost, messages)
  } finally {
    release?.()
  }
}

const busy = () =>
  new Problem('conversation_running', 'The thread is busy. Wait for the end of its run, or stop it.', {
    details: { retry_after: 1 },
  })

export const nothingToDo = (): Problem => invalid('messages', 'must end with a message of the user')

/** Shows nothing of a thread without a message. */
async function replay(conversation: Conversation): Promise<BegunRun> {
  const start = (await lastTurnStart(conversation)) ?? conversation.log.head + 1
  return { start, through: start, isReplay: true, answeredCalls: new Set() }
}

/** A client that only looks answers nothing: then there is no answer, and nothing is decided. */
function answersOf(conversation: Conversation, input: RunInput, { toPost }: NewMessages): GivenAnswer[] {
  const open = conversation.requests.list()
  const outputs = open.flatMap((request): GivenAnswer[] => {
    if (request.kind !== 'client_tool') return []
    const message = input.messages.findLast((each) => resultOf(each) === request.tool_use_ids[0])
    return message ? [{ requestId: request.request_id, answer: outputIn(message) }] : []
  })
  const namedIds = new Set((input.resume ?? []).map(({ interruptId }) => interruptId.split(':')[0]))
  const interrupts = open
    .filter(isForPeople)
    .filter((request) => namedIds.has(request.request_id) || isAwaited(conversation, request))
  const ids = new Set(interrupts.map(({ request_id: id }) => id))
  const entries = (input.resume ?? []).filter(({ interruptId }) => ids.has(interruptId.split(':')[0] ?? ''))
  if (entries.length + outputs.length + toPost.length === 0) return []
  return [...answersToInterrupts(interrupts, entries), ...outputs]
}

/** Subagents in the background may ask when no run shows it: nothing waits for them. */
function isAwaited({ state }: Conversation, { parent_tool_use_id: call }: OpenRequest): boolean {
  const subagent = call === undefined ? undefined : findSubagent(state, call)
  return !subagent || !isDetached(state, subagent)
}

const resultOf = ({ role, toolCallId }: InputMessage): string | undefined =>
  role === 'tool' ? (toolCallId ?? undefined) : undefined

function outputIn({ content, error }: InputMessage): AnswerRequest {
  const output = typeof content === 'string' ? content : partsIn(content)
  const isError = typeof error === 'string'
  return parseField(AnswerRequest, {
    kind: 'client_tool',
    output: isError && (output === '' || output.length === 0) ? error : output,
    is_error: isError,
  })
}

/** The error for a message while a frontend tool has no result. */
function pendingCall(conversation: Conversation, answers: readonly GivenAnswer[]): Problem | undefined {
  const answeredIds = new Set(answers.map(({ requestId }) => requestId))
  const pending = conversation.requests
    .list({ kinds: new Set(['client_tool'] as const) })
    .find((request) => !answeredIds.has(request.request_id) && isAwaited(conversation, request))
  if (!pending) return undefined
  const message = `The call ${pending.tool_use_ids.join(', ')} waits for its result. Send a message of the role tool.`
  return new Problem('waiting_for_client', message)
}

/** All that can be refused is refused before anything changes. */
async function begin(conversation: Conversation, runPost: RunPost, newMessages: NewMessages): Promise<BegunRun> {
  const { access, input } = runPost
  const tools = frontendToolsOf(input)
  const options = optionsForTools(tools.map(({ name }) => name))
  const messages = postedMessages(newMessages, runPost)
  let answers = checkedAnswers(conversation, runPost, newMessages)
  toolsUpdate(conversation, access, tools)
  let start = 0
  const prepare = async () => {
    // Hooks may have taken long.
    answers = checkedAnswers(conversation, runPost, newMessages)
    await useTools(conversation, access, tools)
    start = conversation.log.head + 1
    await answerAs(conversation, access, answers)
    if (answers.length > 0 && conversation.state.status === 'paused') await ensureRun(conversation, options)
  }
  if (messages.length === 0) await prepare()
  // A run that continues has its rules.
  const runOptions = answers.length > 0 ? {} : options
  const [first, last] = await post(conversation, messages, { prepare, runOptions, hashBody: runPost.hashBody })
  const answeredCalls = new Set(input.messages.flatMap((message) => resultOf(message) ?? []))
  return {
    start: answers.length > 0 ? start : (first ?? start),
    through: last ?? start,
    isReplay: false,
    answeredCalls,
  }
}

/** What the request answers now. Throws a `Problem` if the conversation is busy, or an answer is refused. */
function checkedAnswers(conversation: Conversation, { input, access }: RunPost, messages: NewMessages) {
  const answers = answersOf(conversation, input, messages)
  const pending = pendingCall(conversation, answers)
  if (messages.toPost.length > 0 && pending !== undefined) throw pending
  if (conversation.state.status === 'running' && answers.length === 0) throw busy()
  mayAnswer(access, answers)
  for (const { requestId, answer } of answers) conversation.requests.check(requestId, answer)
  return answers
}

type PostedMessage = {
  readonly id: string
  readonly parts: readonly UserPart[]
  readonly contextAt: number | undefined
  readonly message: UserInput
}

/** Throws a `Problem` for a message that the API does not take. */
export function postedMessages(
  { toPost, context }: NewMessages,
  { instructions }: Pick<RunPost, 'instructions'>,
): PostedMessage[] {
  return toPost.map(({ id, parts, earlier = [] }, at) => {
    const before: UserPart[] = at === 0 && instructions !== undefined ? [{ type: 'text', text: instructions }] : []
    const addedContext = at === 0 ? context : undefined
    const content = [...before, ...(addedContext ? [addedContext] : []), ...earlier, ...parts]
    const message = parseField(UserInput, { role: 'user', content })
    return { id, parts, contextAt: addedContext && before.length, message }
  })
}

type PostOptions = {
  readonly prepare: () => Promise<void>
  readonly runOptions: RunOptions
  readonly hashBody: HashBody
}

/** Returns the seqs of the first and the last one. Hooks are asked once for each, before `prepare`. */
async function post(
  conversation: Conversation,
  messages: readonly PostedMessage[],
  { prepare, runOptions, hashBody }: PostOptions,
): Promise<readonly [number | undefined, number | undefined]> {
  const promptHooks: (PromptHooks | undefined)[] = []
  if (messages.length > 1)
    for (const { message } of messages) promptHooks.push(await conversation.messages.askHooks(message))
  const postedIds: string[] = []
  const seqs: number[] = []
  try {
    for (const [at, { id, parts, contextAt, message }] of messages.entries()) {
      const run = at === messages.length - 1
      const options = run && Object.keys(runOptions).length > 0 && { run_options: runOptions }
      const mark = { key: keyOfMessage(id, contextAt), ...hashBody('ag-ui message', parts) }
      const steps = { promptHooks: promptHooks[at], ...(at === 0 && { prepare }) }
      const { seq, event_id } = await conversation.post({ message, run, ...options }, mark, steps)
      postedIds.push(event_id)
      seqs.push(seq)
    }
  } catch (error) {
    // Messages that nobody reads would be a part of the next turn. One stays if the agent has read it.
    for (const id of postedIds) await conversation.withdrawals.withdraw(id).catch(() => {})
    throw error
  }
  return [seqs[0], seqs.at(-1)]
}
