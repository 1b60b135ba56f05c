/** `--tool-choice required`: the first answer of the model must call a tool, and later ones need not. */
import type { ConversationHandle } from '../client/conversation/conversation-handle.ts'
import type { UserInput } from '../contract/message.ts'

/** The run that answers the message. Its first answer is a separate run, which ends with `max_steps`. */
type ForcedRun = {
  readonly content: UserInput['content']
  readonly maxSteps: number | undefined
}

/** Posts the message and starts the agent for one answer. Returns the id of the run. */
export async function startForcedTurn(conversation: ConversationHandle, content: UserInput['content']) {
  await conversation.updateConfig({ llm_config: { tool_choice: 'required' } })
  await conversation.postMessage({ message: { role: 'user', content }, run: false }, {})
  return (await conversation.run({ max_steps: 1 })).run_id
}

/** Call it when the first run has ended, however it did: every later answer would have to call a tool, too. */
export async function endForcedTurn(conversation: ConversationHandle): Promise<void> {
  await conversation.updateConfig({ llm_config: { tool_choice: 'auto' } })
}

/** For a caller that follows the events elsewhere. Returns when the run after the first answer has started. */
export async function runWithTool(conversation: ConversationHandle, { content, maxSteps }: ForcedRun): Promise<void> {
  const { last_seq } = await conversation.get()
  const runId = await startForcedTurn(conversation, content)
  let goesOn = false
  try {
    for await (const event of conversation.events({ after: last_seq, types: ['Result'] })) {
      if (event.run_id !== runId || event.parent_tool_use_id !== undefined) continue
      goesOn = event.stop_reason === 'max_steps' && maxSteps !== 1
      break
    }
  } finally {
    await endForcedTurn(conversation)
  }
  if (goesOn) await conversation.run(restOf(maxSteps))
}

/** What is left of `maxSteps` after the first answer. */
export const restOf = (maxSteps: number | undefined) => (maxSteps === undefined ? {} : { max_steps: maxSteps - 1 })
