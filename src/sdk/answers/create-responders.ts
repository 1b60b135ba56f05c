/** Chooses what answers for the program, by the options of its query. */
import type { QueryOptions } from '../options/query-options.ts'
import { splitTools } from '../options/split-tools.ts'
import { ApprovalResponder } from './approval-responder.ts'
import { QuestionResponder } from './question-responder.ts'
import type { Responder } from './responder.ts'
import { createTerminalApprover } from './terminal-approver.ts'
import type { ToolResponderDeps } from './tool-responder.ts'
import { ToolResponder } from './tool-responder.ts'

/** A function of the program comes before the person at the terminal. */
export function createResponders(options: QueryOptions, deps: Omit<ToolResponderDeps, 'tools'>): Responder[] {
  const { interactiveApprover } = options
  const terminal = interactiveApprover ? createTerminalApprover(interactiveApprover) : undefined
  const decide = options.canUseTool ?? terminal?.canUseTool
  const answer = options.answerQuestions ?? terminal?.answerQuestions
  const tools = splitTools(options.tools).own
  return [
    ...(tools.length > 0 ? [new ToolResponder({ ...deps, tools })] : []),
    ...(decide ? [new ApprovalResponder(deps, decide)] : []),
    ...(answer ? [new QuestionResponder(deps, answer)] : []),
  ]
}
