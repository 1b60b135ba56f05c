/** Answers that the server refuses: what they answer still waits, and learns why. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'

/** Sends an answer, and if the server refuses it, the one that `explain` makes of the reason. */
export async function sendOrExplain<T>(
  answer: T,
  send: (answer: T) => Promise<unknown>,
  explain: (reason: string) => T,
): Promise<void> {
  try {
    await send(answer)
  } catch (error) {
    if (!(error instanceof AgentServerError) || !isRefused(error)) throw error
    await send(explain(error.message))
  }
}

const isRefused = ({ status }: AgentServerError): boolean => status === 400 || status === 413 || status === 422
