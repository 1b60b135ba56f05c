/** Begins the answer that a request of this protocol asks for: to a message, to the same message again, or the rest of one. */
import { isDeepStrictEqual } from 'node:util'
import type { Access } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import type { EventOf } from '../../contract/events/event.ts'
import { hasForm } from '../../contract/requests/request-forms.ts'
import { REQUESTS } from '../../contract/requests/request-kinds.ts'
import type { RewindRequest } from '../../contract/rewind.ts'
import type { UserInput } from '../../contract/values/message.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { RewindOptions } from '../../conversations/rewind.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { HashBody } from '../../security/body-hash.ts'
import { configureAndRewind } from '../shared/configure-and-rewind.ts'
import { isAtRest } from '../shared/is-at-rest.ts'
import { beginAlone } from '../shared/begin-alone.ts'
import { optionsForTools, toolsUpdate } from '../shared/use-tools.ts'
import { userMessages } from '../shared/user-messages.ts'
import type { BegunAnswer } from './answer-requests.ts'
import { answerQuestions, continueAnswer } from './answer-requests.ts'
import { clientToolsIn } from './client-tools-in.ts'
import { openTurn } from './turn-marks.ts'
import type { UiChatRequest } from './ui-request.ts'
import { continuedAnswer, lastInput, readQuestionAnswers } from './ui-request.ts'
import { formatMessageKey, userMessageId } from './user-message.ts'

export type UiChatPost = {
  readonly body: UiChatRequest
  /** Undefined: the request only answers what waits. */
  readonly input: UserInput | undefined
  readonly access: Access
  readonly hashBody: HashBody
}

/** Throws a `Problem` if the conversation is busy or waits for something else. Then nothing has changed. */
export async function beginAnswer(conversation: Conversation, chatPost: UiChatPost): Promise<BegunAnswer> {
  const release = beginAlone(conversation.id)
  if (!release) throw busy()
  try {
    const answer = continuedAnswer(chatPost.body)
    if (answer) return await continueAnswer(conversation, chatPost.access, answer)
    const message = lastInput(chatPost.body)
    if (chatPost.input) return await answerInput(conversation, chatPost, message.id, chatPost.input)
    return await answerQuestions(conversation, chatPost.access, readQuestionAnswers(message))
  } finally {
    release()
  }
}

/** All that can be refused is refused before anything changes. */
async function answerInput(
  conversation: Conversation,
  chatPost: UiChatPost,
  id: string,
  input: UserInput,
): Promise<BegunAnswer> {
  const isAgain = chatPost.body.trigger === 'regenerate-message' || chatPost.body.messageId === id
  const knownMessage = await findInput(conversation, id, isAgain)
  if (knownMessage && !isAgain) {
    refuseOther(knownMessage, input, chatPost.hashBody)
    return await attach(conversation, knownMessage.seq)
  }
  const knownSeq = knownMessage?.seq
  const tools = chatPost.body.client_tools ?? undefined
  const update = tools && toolsUpdate(conversation, chatPost.access, tools)
  const { head } = conversation.log
  const refuse = () => {
    if (!isAtRest(conversation)) throw busy()
    if (knownSeq === undefined) refuseWaiting(conversation)
  }
  refuse()
  const prepare = async () => {
    // Hooks may have taken long.
    refuse()
    const toSeq = knownSeq === undefined ? undefined : knownSeq - 1
    const rewind = (request: RewindRequest, options: RewindOptions) =>
      takeBack(conversation, request, { ...options, by: chatPost.access.key?.name })
    await configureAndRewind(conversation, { update, toSeq, head, rewind })
  }
  const names = tools ? tools.map(({ name }) => name) : [...clientToolsIn(conversation)]
  const run_options = optionsForTools(names)
  const options = run_options.allowed_tools && { run_options }
  const mark = { key: formatMessageKey(id, uuid7()), ...chatPost.hashBody('ai-sdk message', input) }
  const { seq } = await conversation.post({ message: input, run: true, ...options }, mark, { prepare })
  return { start: seq, shownThrough: 0, isNew: true }
}

/** Another API has its own ids. What a page has loaded is as it is stored: without secrets. */
function refuseOther(message: EventOf<'UserMessage'>, input: UserInput, hashBody: HashBody): void {
  if (userMessageId(message) === message.id || message.body_hash === undefined) return
  const { bodyHash, formerHashes } = hashBody('ai-sdk message', input)
  if ([bodyHash, ...formerHashes].includes(message.body_hash)) return
  if (isDeepStrictEqual(message.content, input.content)) return
  throw new Problem('idempotency_mismatch', 'The chat has a message with this id and another text. Send a new id.')
}

/** The request was sent before, or the message waits for a run. */
async function attach(conversation: Conversation, start: number): Promise<BegunAnswer> {
  if (conversation.state.status !== 'running' && (await openTurn(conversation)) === start) {
    const isWaiting = conversation.requests.list().length > 0
    if (!isWaiting) await conversation.run(optionsForTools([...clientToolsIn(conversation)]))
    return { start, shownThrough: 0, isNew: !isWaiting }
  }
  return { start, shownThrough: 0, isNew: false }
}

const busy = (): Problem =>
  new Problem('conversation_running', 'The agent is busy with an answer. Wait for its end, or stop it.', {
    details: { retry_after: 1 },
  })

/** A message decides nothing. It ends questions. */
function refuseWaiting({ requests }: Conversation): void {
  const waiting = requests.list()
  const advice = 'Send its answer first, or stop the agent.'
  if (waiting.some(({ kind }) => REQUESTS[kind].scope === 'approve'))
    throw new Problem('waiting_for_confirmation', `The agent waits for a decision. ${advice}`)
  if (waiting.some((request) => hasForm(request, 'program')))
    throw new Problem('waiting_for_client', `The agent waits for the output of a tool of the page. ${advice}`)
}

/** Messages that a repeated request can have. */
const MAX_COMPARED = 64

/** A new message is only compared with the newest ones. */
async function findInput(
  conversation: Conversation,
  id: string,
  isAnywhere: boolean,
): Promise<EventOf<'UserMessage'> | undefined> {
  let count = 0
  for await (const event of userMessages(conversation)) {
    if (userMessageId(event) === id) return event
    if (!isAnywhere && ++count === MAX_COMPARED) return undefined
  }
  return undefined
}

async function takeBack(conversation: Conversation, request: RewindRequest, options: RewindOptions): Promise<void> {
  await conversation.rewind(request, options).catch((error: unknown) => {
    if (!(error instanceof Problem && error.code === 'invalid_request')) throw error
    throw new Problem('conversation_changed', 'The agent read this message while it worked; choose an earlier one.')
  })
}
