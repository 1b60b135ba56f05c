/** Begins what a request asks for: answers what waits and posts new messages, or finds the turn to show. */
import type { Access } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import type { OpenRequest } from '../../contract/request.ts'
import { AnswerRequest } from '../../contract/request.ts'
import { REQUESTS } from '../../contract/events/request-kinds.ts'
import type { RunOptions } from '../../contract/run.ts'
import type { UserPart } from '../../contract/values/message.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { HashBody } from '../../security/body-hash.ts'
import { findSubagent, isDetached } from '../../state/subagents.ts'
import { ensureRun } from '../shared/ensure-run.ts'
import { takeTurn } from '../shared/take-turn.ts'
import { optionsForTools, toolsUpdate, useTools } from '../shared/use-tools.ts'
import { keyOfMessage } from './ag-ui-event.ts'
import type { InterruptAnswer } from './interrupts.ts'
import { answersToInterrupts, isInterrupt } from './interrupts.ts'
import { lastTurnStart } from './last-turn.ts'
import type { NewMessages, UserInputs } from './new-messages.ts'
import { newMessagesOf } from './new-messages.ts'
import type { InputMessage, RunInput } from './run-input.ts'
import { invalid, parseField } from '../shared/fields.ts'
import { frontendToolsOf, partsIn } from './run-input.ts'

export type RunAsk = {
  readonly input: RunInput
  readonly userInputs: UserInputs
  readonly access: Access
  readonly hashBody: HashBody
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
  /** The first message says what other keys put in the system prompt. */
  readonly instructions: string | undefined
}

/** `start`: seq of the first event of the turn. `through`: of what the client has said. `isReplay`: the client may have seen a part of it. */
export type BegunRun = {
  readonly start: number
  readonly through: number
  readonly isReplay: boolean
  readonly answeredCalls: ReadonlySet<string>
}

/** Throws a `Problem` if the conversation is busy, or waits for something that the request does not answer. */
export async function beginRun(conversation: Conversation, ask: RunAsk): Promise<BegunRun> {
  const release = takeTurn(conversation.id)
  try {
    const messages = await newMessagesOf(conversation, ask.input, ask.userInputs)
    const answers = answersOf(conversation, ask.input, messages)
    if (answers.length === 0 && messages.toPost.length === 0) return await replay(conversation)
    if (!release) throw busy()
    const pending = pendingCall(conversation, answers)
    if (messages.toPost.length > 0 && pending !== undefined) throw pending
    if (conversation.state.status === 'running' && answers.length === 0) throw busy()
    return await begin(conversation, ask, messages, answers)
  } finally {
    release?.()
  }
}

const busy = () =>
  new Problem('conversation_running', 'The thread is busy. Wait for the end of its run, or stop it.', {
    details: { retry_after: 1 },
  })

export const nothingToDo = (): Problem => invalid('messages', 'must end with a message of the user')

async function replay(conversation: Conversation): Promise<BegunRun> {
  const start = await lastTurnStart(conversation)
  if (start === undefined) throw nothingToDo()
  return { start, through: start, isReplay: true, answeredCalls: new Set() }
}

/** A client that only looks answers nothing: then there is no answer, and nothing is decided. */
function answersOf(conversation: Conversation, input: RunInput, { toPost }: NewMessages): InterruptAnswer[] {
  const open = conversation.requests.list()
  const outputs = open.flatMap((request): InterruptAnswer[] => {
    if (request.kind !== 'client_tool') return []
    const message = input.messages.findLast((each) => resultOf(each) === request.tool_use_ids[0])
    return message ? [{ requestId: request.request_id, answer: outputIn(message) }] : []
  })
  const namedIds = new Set((input.resume ?? []).map(({ interruptId }) => interruptId.split(':')[0]))
  const interrupts = open
    .filter(isInterrupt)
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
function pendingCall(conversation: Conversation, answers: readonly InterruptAnswer[]): Problem | undefined {
  const answeredIds = new Set(answers.map(({ requestId }) => requestId))
  const pending = conversation.requests
    .list({ kinds: new Set(['client_tool'] as const) })
    .find((request) => !answeredIds.has(request.request_id) && isAwaited(conversation, request))
  if (!pending) return undefined
  const message = `The call ${pending.tool_use_ids.join(', ')} waits for its result. Send a message of the role tool.`
  return new Problem('waiting_for_client', message)
}

/** All that can be refused is refused before anything changes. */
async function begin(
  conversation: Conversation,
  ask: RunAsk,
  { toPost, context }: NewMessages,
  answers: readonly InterruptAnswer[],
): Promise<BegunRun> {
  const { access, input } = ask
  const tools = frontendToolsOf(input)
  access.require(...answers.map(({ answer }) => REQUESTS[answer.kind].scope))
  const messages = toPost.map(({ id, parts }, at) => ({
    id,
    message: parseField(UserInput, { role: 'user', content: at === 0 ? [...before(ask, context), ...parts] : parts }),
  }))
  const changesTools = toolsUpdate(conversation, access, tools) !== undefined
  for (const { requestId, answer } of answers) conversation.requests.check(requestId, answer)
  // Hooks can block a message. One that is alone is posted before anything else happens.
  if (changesTools || answers.length > 0 || messages.length > 1)
    for (const { message } of messages) await conversation.checkFirst(message, ask.signal)
  await useTools(conversation, access, tools)
  const start = conversation.log.head + 1
  for (const { requestId, answer } of answers) await conversation.requests.answer(requestId, answer, access.key?.name)
  const options = optionsForTools(tools.map(({ name }) => name))
  if (answers.length > 0 && conversation.state.status === 'paused') await ensureRun(conversation, options)
  // A run that continues has its rules.
  const [first, last] = await post(conversation, messages, answers.length > 0 ? {} : options, ask.hashBody)
  const answeredCalls = new Set(input.messages.flatMap((message) => resultOf(message) ?? []))
  return {
    start: answers.length > 0 ? start : (first ?? start),
    through: last ?? start,
    isReplay: false,
    answeredCalls,
  }
}

const before = ({ instructions }: RunAsk, context: UserPart | undefined): UserPart[] => [
  ...(instructions === undefined ? [] : [{ type: 'text' as const, text: instructions }]),
  ...(context ? [context] : []),
]

type WantedMessage = { readonly id: string; readonly message: UserInput }

/** Returns the seqs of the first and the last one. */
async function post(
  conversation: Conversation,
  messages: readonly WantedMessage[],
  runOptions: RunOptions,
  hashBody: HashBody,
): Promise<readonly [number | undefined, number | undefined]> {
  const postedIds: string[] = []
  const seqs: number[] = []
  try {
    for (const [at, { id, message }] of messages.entries()) {
      const run = at === messages.length - 1
      const options = run && Object.keys(runOptions).length > 0 && { run_options: runOptions }
      const mark = { key: keyOfMessage(id), ...hashBody('ag-ui message', message) }
      const { seq, event_id } = await conversation.post({ message, run, ...options }, mark)
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
