/** Chooses what answers for the program, by the options of its query. */
import type { QueryOptions } from '../options/query-options.ts'
import { splitTools } from '../options/split-tools.ts'
import { ApprovalAnswerer } from './approvals.ts'
import { QuestionAnswerer } from './questions.ts'
import { RequestResponder } from './request-responder.ts'
import { createTerminalApprover } from './terminal-approver.ts'
import type { ToolAnswererDeps } from './tool-calls.ts'
import { ToolAnswerer } from './tool-calls.ts'

/** A function of the program comes before the person at the terminal. */
export function createResponder(options: QueryOptions, deps: Omit<ToolAnswererDeps, 'tools'>): RequestResponder {
  const { interactiveApprover } = options
  const terminal = interactiveApprover ? createTerminalApprover(interactiveApprover) : undefined
  const decide = options.canUseTool ?? terminal?.canUseTool
  const answer = options.answerQuestions ?? terminal?.answerQuestions
  const tools = splitTools(options.tools).own
  const answerers = [
    ...(tools.length > 0 ? [new ToolAnswerer({ ...deps, tools })] : []),
    ...(decide ? [new ApprovalAnswerer(deps, decide)] : []),
    ...(answer ? [new QuestionAnswerer(deps, answer)] : []),
  ]
  return new RequestResponder(answerers, deps.fail)
}
