/** Begins the answer that a request of this protocol asks for: to a message, to the same message again, or the rest of one. */
import type { Access } from '../../access/access.ts'
import { Problem } from '../../contract/problem.ts'
import type { UserInput } from '../../contract/values/message.ts'
import { holds } from '../../contract/events/rewound.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import { readPages } from '../../events/read-pages.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { HashBody } from '../../security/body-hash.ts'
import { takeTurn, toolsUpdate } from '../openai/begin-turn.ts'
import type { BegunAnswer } from './answer-requests.ts'
import { answerQuestions, continueAnswer } from './answer-requests.ts'
import { clientToolsIn } from './client-tools-in.ts'
import { openTurn } from './turn-marks.ts'
import type { UiChatRequest } from './ui-request.ts'
import { continuedAnswer, lastInput, readQuestionAnswers } from './ui-request.ts'
import { formatMessageKey, userMessageId } from './user-message.ts'

export type UiChatAsk = {
  readonly body: UiChatRequest
  /** Undefined: the request only answers what waits. */
  readonly input: UserInput | undefined
  readonly access: Access
  readonly hashBody: HashBody
}

/** Throws a `Problem` if the conversation is busy or waits for something else. Then nothing has changed. */
export async function beginAnswer(conversation: Conversation, ask: UiChatAsk): Promise<BegunAnswer> {
  const release = takeTurn(conversation.id)
  if (!release) throw busy()
  try {
    const answer = continuedAnswer(ask.body)
    if (answer) return await continueAnswer(conversation, ask.access, answer)
    const message = lastInput(ask.body)
    if (ask.input) return await answerInput(conversation, ask, message.id, ask.input)
    return await answerQuestions(conversation, ask.access, readQuestionAnswers(message))
  } finally {
    release()
  }
}

async function answerInput(
  conversation: Conversation,
  ask: UiChatAsk,
  id: string,
  input: UserInput,
): Promise<BegunAnswer> {
  const isAgain = ask.body.trigger === 'regenerate-message' || ask.body.messageId === id
  const knownSeq = await findInput(conversation, id, isAgain)
  if (knownSeq !== undefined && !isAgain) return await attach(conversation, knownSeq)
  if (isBusy(conversation)) throw busy()
  const update = ask.body.client_tools && toolsUpdate(conversation, ask.access, ask.body.client_tools)
  if (knownSeq === undefined) refuseWaiting(conversation)
  else await takeBack(conversation, knownSeq, ask.access)
  if (update) await conversation.configure(update)
  return { start: await say(conversation, ask, id, input), shownThrough: 0, isNew: true }
}

/** The request was sent before, or the message waits for a run. */
async function attach(conversation: Conversation, start: number): Promise<BegunAnswer> {
  if (conversation.state.status !== 'running' && (await openTurn(conversation)) === start) {
    const isWaiting = conversation.requests.list().length > 0
    if (!isWaiting) await conversation.run(ownTools(conversation))
    return { start, shownThrough: 0, isNew: !isWaiting }
  }
  return { start, shownThrough: 0, isNew: false }
}

/** A call that the client executes waits within the run at first. */
const isBusy = ({ state, requests }: Conversation): boolean =>
  state.status === 'running' && requests.list().every(({ kind }) => kind !== 'client_tool')

const busy = (): Problem =>
  new Problem('conversation_running', 'The agent is busy with an answer. Wait for its end, or stop it.', {
    details: { retry_after: 1 },
  })

/** A message decides nothing. It ends questions. */
function refuseWaiting({ requests }: Conversation): void {
  const kinds = new Set(requests.list().map(({ kind }) => kind))
  const advice = 'Send its answer first, or stop the agent.'
  if (kinds.has('permission') || kinds.has('network') || kinds.has('hook'))
    throw new Problem('waiting_for_confirmation', `The agent waits for a decision. ${advice}`)
  if (kinds.has('client_tool'))
    throw new Problem('waiting_for_client', `The agent waits for the output of a tool of the page. ${advice}`)
}

const INPUTS: ReadonlySet<string> = new Set(['UserMessage', 'MessageWithdrawn'])
const PAGE = 64

/** A new message is only compared with the newest ones, which a repeated request can have. */
async function findInput({ log, state }: Conversation, id: string, isAnywhere: boolean): Promise<number | undefined> {
  const withdrawn = new Set<number>()
  const range = { beforeSeq: log.head + 1, types: INPUTS, order: 'desc', limit: PAGE } as const
  for await (const { events } of readPages(log, range)) {
    for (const { event, seq } of events) {
      if (event.type === 'MessageWithdrawn') withdrawn.add(event.message_seq)
      if (event.type !== 'UserMessage' || withdrawn.has(seq) || !holds(state.rewound, event)) continue
      if (userMessageId(event) === id) return seq
    }
    if (!isAnywhere && events.length > 0) return undefined
  }
  return undefined
}

async function takeBack(conversation: Conversation, seq: number, access: Access): Promise<void> {
  const request = { to_seq: seq - 1, last_seq: conversation.log.head }
  await conversation.rewind(request, { by: access.key?.name }).catch((error: unknown) => {
    if (!(error instanceof Problem && error.code === 'invalid_request')) throw error
    throw new Problem('conversation_changed', 'The agent read this message while it worked; choose an earlier one.')
  })
}

async function say(
  conversation: Conversation,
  { hashBody }: UiChatAsk,
  id: string,
  message: UserInput,
): Promise<number> {
  const run_options = ownTools(conversation)
  const options = run_options.allowed_tools && { run_options }
  const mark = { key: formatMessageKey(id, uuid7()), ...hashBody('ai-sdk message', message) }
  return (await conversation.post({ message, run: true, ...options }, mark)).seq
}

/** The client executes them itself: it needs no decision about its own tools. Rules that ask or deny hold. */
function ownTools(conversation: Conversation): { readonly allowed_tools?: string[] } {
  const names = [...clientToolsIn(conversation)].filter((name) => /^[A-Za-z_]/.test(name))
  return names.length > 0 ? { allowed_tools: names } : {}
}
