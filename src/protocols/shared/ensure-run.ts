import { Problem } from '../../contract/problem.ts'
import type { RunOptions } from '../../contract/run.ts'
import type { Conversation } from '../../conversations/conversation.ts'

/** Starts a run for answers, unless they have continued the one that waits for them: it may have been paused. */
export async function ensureRun(conversation: Conversation, options: RunOptions): Promise<void> {
  if (conversation.state.status === 'running') return
  try {
    await conversation.run(options)
  } catch (error) {
    if (!(error instanceof Problem) || !CONTINUED.has(error.code)) throw error
  }
}

/** It works already, or something else waits. */
const CONTINUED: ReadonlySet<string> = new Set([
  'already_running',
  'waiting_for_confirmation',
  'waiting_for_input',
  'waiting_for_client',
])
