/** Sends what a request says: the answers to what waits, and a message. If one of them is refused, the other is not sent. */
import type { Access } from '../../access/access.ts'
import type { ClientTool } from '../../contract/client-tools/client-tool.ts'
import { Problem } from '../../contract/problem.ts'
import type { RunOptions } from '../../contract/run.ts'
import { UserInput } from '../../contract/values/message.ts'
import type { UserPart } from '../../contract/values/message.ts'
import type { ToolChoice } from '../../contract/values/llm-config.ts'
import type { Conversation } from '../../conversations/conversation.ts'
import type { Idempotency } from '../../state/idempotency.ts'
import { readsMessages } from '../../state/run-overrides.ts'
import { answerAs, mayAnswer } from '../shared/answer-as.ts'
import type { GivenAnswer } from '../shared/answer-as.ts'
import { ensureRun } from '../shared/ensure-run.ts'
import { parseField } from '../shared/fields.ts'
import { optionsForTools } from '../shared/use-tools.ts'

type Words = {
  readonly answers: readonly GivenAnswer[]
  /** Empty: there is no message. */
  readonly content: readonly UserPart[]
  readonly tools: readonly ClientTool[]
  readonly outputSchema: Record<string, unknown> | undefined
  readonly toolChoice?: ToolChoice | undefined
  /** Other options of the run that a message begins. */
  readonly runOptions: RunOptions
  readonly mark?: Idempotency
  /** Done before anything is said, when the hooks let the message pass. If it throws, nothing is. */
  readonly prepare?: () => Promise<void>
}

/** Returns the seq of the message, or of the first answer. Throws a `Problem`. */
export async function say(conversation: Conversation, access: Access, words: Words): Promise<number> {
  const { answers, content } = words
  mayAnswer(access, answers)
  const message = content.length > 0 ? parseField(UserInput, { role: 'user', content }) : undefined
  const run_options = optionsOf(words)
  refuseAnswers(conversation, answers)
  const prepare = async () => {
    // Hooks may have taken long.
    refuseAnswers(conversation, answers)
    await words.prepare?.()
  }
  if (message && answers.length === 0) {
    const isPlain = Object.keys(run_options).length === 0
    const request = { message, run: true, ...(!isPlain && { run_options }) }
    return (await conversation.post(request, words.mark, { prepare })).seq
  }
  let head = 0
  const answerAll = async () => {
    head = conversation.log.head
    await answerAs(conversation, access, answers)
  }
  const prepareAndAnswer = async () => {
    await prepare()
    await answerAll()
  }
  // The agent reads a message with the answers, in the run that they continue. It would end what waits for a decision.
  const isFirst = readsMessages(conversation.state)
  const post = async (before: () => Promise<void>) =>
    message && (await conversation.post({ message, run: false }, words.mark, { prepare: before }))
  const first = isFirst ? await post(prepare) : undefined
  try {
    if (first) await answerAll()
    else if (!(await post(prepareAndAnswer))) await prepareAndAnswer()
    await ensureRun(conversation, run_options)
  } catch (error) {
    // A message that nobody reads would be a part of the next turn. It stays if the agent has read it.
    if (first) await conversation.withdrawals.withdraw(first.event_id).catch(() => {})
    throw error
  }
  return first?.seq ?? (await firstAnswer(conversation, head))
}

/** Throws a `Problem` if an answer is wrong, or nothing waits for it any more. */
function refuseAnswers({ requests }: Conversation, answers: readonly GivenAnswer[]): void {
  const openIds = new Set(requests.list().map(({ request_id: id }) => id))
  for (const { requestId, answer } of answers) {
    if (!openIds.has(requestId)) throw new Problem('conversation_changed', 'Somebody else has answered it. Try again.')
    requests.check(requestId, answer)
  }
}

function optionsOf({ tools, outputSchema: output_schema, toolChoice: tool_choice, runOptions }: Words): RunOptions {
  return {
    ...runOptions,
    ...(output_schema && { output_schema }),
    ...(tool_choice && { tool_choice }),
    ...optionsForTools(tools.map(({ name }) => name)),
  }
}

const ANSWERED: ReadonlySet<string> = new Set(['RequestAnswered'])

async function firstAnswer({ log }: Conversation, head: number): Promise<number> {
  const { events } = await log.read({ afterSeq: head, types: ANSWERED, limit: 1 })
  return events[0]?.seq ?? head + 1
}
