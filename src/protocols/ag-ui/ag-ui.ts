/** What the routes of AG-UI do, in one module, which is loaded when it is used. */
import * as errors from './ag-ui-error.ts'
import * as operations from './run-agent.ts'

export const { sendProblem } = errors
export const { runAgent, stopAgent, conversationOfThread } = operations
