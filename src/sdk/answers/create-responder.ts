/** Chooses what answers for the program, by the options of its query. */
import type { QueryOptions } from '../options/query-options.ts'
import { splitTools } from '../options/split-tools.ts'
import { Approvals } from './approvals.ts'
import { Questions } from './questions.ts'
import { RequestResponder } from './request-responder.ts'
import { createTerminalApprover } from './terminal-approver.ts'
import type { ToolCallsDeps } from './tool-calls.ts'
import { ToolCalls } from './tool-calls.ts'

/** A function of the program comes before the person at the terminal. */
export function createResponder(options: QueryOptions, deps: Omit<ToolCallsDeps, 'tools'>): RequestResponder {
  const { interactiveApprover } = options
  const terminal = interactiveApprover ? createTerminalApprover(interactiveApprover) : undefined
  const decide = options.canUseTool ?? terminal?.canUseTool
  const answer = options.answerQuestions ?? terminal?.answerQuestions
  const tools = splitTools(options.tools).own
  const answerers = [
    ...(tools.length > 0 ? [new ToolCalls({ ...deps, tools })] : []),
    ...(decide ? [new Approvals(deps, decide)] : []),
    ...(answer ? [new Questions(deps, answer)] : []),
  ]
  return new RequestResponder(answerers, deps.fail)
}
