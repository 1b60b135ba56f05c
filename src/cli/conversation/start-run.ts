/** Sends a message with the options of the command line for its run. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { CallOptions } from '../../client/request/api.ts'
import type { UserInput } from '../../contract/values/message.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { OverrideOptions } from '../settings/conversation-settings.ts'

type MessageOptions = {
  readonly content: UserInput['content']
  readonly maxSteps: number | undefined
  /** `--tool-choice required`: an option of the run and not of the conversation, so that nothing of it is left after a crash. */
  readonly forcesTool: boolean
  readonly overrides?: OverrideOptions
  /** The options of the message. */
  readonly options?: CallOptions
}

/** Returns the id of the run. If its options are refused, or another run is active, the message is not stored. */
export async function startRun(
  conversation: ConversationHandle,
  { content, maxSteps, forcesTool, overrides = {}, options = {} }: MessageOptions,
): Promise<string | undefined> {
  const tool_choice = forcesTool ? ('required' as const) : undefined
  const run_options = withoutUndefined({ max_steps: maxSteps, tool_choice, ...overrides })
  if (Object.keys(run_options).length === 0) return (await conversation.send(content, options)).run_id
  const message = { role: 'user' as const, content }
  return (await conversation.postMessage({ message, run: true, run_options }, options)).run_id
}
