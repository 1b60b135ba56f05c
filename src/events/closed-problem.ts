/** The problem that requests receive while their conversation is closed. */
import { Problem } from '../contract/problem.ts'

export const closedProblem = (end: 'deleted' | 'closing'): Problem =>
  end === 'deleted'
    ? new Problem('conversation_deleted', 'The conversation has been deleted.')
    : new Problem('unavailable', 'The server is stopping; try again when it is running.')
