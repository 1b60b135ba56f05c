/** Sends a message with the options of the command line for its run. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { CallOptions } from '../../client/request/api.ts'
import type { UserInput } from '../../contract/values/message.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { OverrideOptions } from '../settings/conversation-settings.ts'

type RunOptions = {
  readonly content: UserInput['content']
  readonly maxSteps: number | undefined
  /** `--tool-choice required`: an option of the run and not of the conversation, so that nothing of it is left after a crash. */
  readonly forcesTool: boolean
  readonly overrides?: OverrideOptions
  /** The options of the message. */
  readonly options?: CallOptions
}

/** Returns the id of the run. If it is refused, the message is taken back: another run would read it later. */
export async function startRun(
  conversation: ConversationHandle,
  { content, maxSteps, forcesTool, overrides = {}, options = {} }: RunOptions,
): Promise<string | undefined> {
  const tool_choice = forcesTool ? ('required' as const) : undefined
  const run = withoutUndefined({ max_steps: maxSteps, tool_choice, ...overrides })
  if (Object.keys(run).length === 0) return (await conversation.send(content, options)).run_id
  const { event_id } = await conversation.postMessage({ message: { role: 'user', content }, run: false }, options)
  try {
    return (await conversation.run(run)).run_id
  } catch (error) {
    throw isRefusal(error) ? await takeBack(conversation, event_id, error) : error
  }
}

/** Anything else may have started the run, or is repeated with the same message. */
const isRefusal = (error: unknown): error is AgentServerError =>
  error instanceof AgentServerError && (error.status === 400 || error.status === 403 || error.status === 409)

/** Returns what to throw. */
async function takeBack(conversation: ConversationHandle, id: string, refusal: AgentServerError): Promise<unknown> {
  try {
    await conversation.withdrawMessage(id)
    return refusal
  } catch (error) {
    const isRead = error instanceof AgentServerError && error.code === 'already_read'
    const advice = isRead ? 'The run of another program has read the message' : 'The message is stored without a run'
    return new Error(`${advice}: do not send it again. ${refusal.message}`, { cause: refusal })
  }
}
