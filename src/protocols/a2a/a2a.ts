/** What the routes of A2A do, in one module, which is loaded when it is used. */
import * as card from './agent-card.ts'
import * as bindings from './bindings.ts'

export const { agentCard } = card
export const { answerHttp, answerRpc, conversationOfCall, sendHttpError, sendRpcError } = bindings
