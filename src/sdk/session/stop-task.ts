/** Ends one piece of work of a session by its id: a task, or a subagent in the background. */
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import { AgentServerError } from '../../client/request/agent-server-error.ts'

/** Returns the task, or the end of the subagent. */
export async function stopTask(conversation: ConversationHandle, id: string) {
  try {
    return await conversation.tasks.cancel(id)
  } catch (error) {
    if (!(error instanceof AgentServerError) || error.code !== 'task_not_found') throw error
    return await conversation.stopSubagent(id)
  }
}
