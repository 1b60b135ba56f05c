/** The exit codes of a run without the chat, and what a run that did not simply end says about it. */
import type { StopReason } from '../../contract/events/status.ts'
import { oneLine } from '../../telemetry/plain-text.ts'
import type { TurnEnd } from './run-turn.ts'

export const DONE = 0
export const FAILED = 1
const STOPPED = 3

const CODES: Readonly<Record<StopReason, number>> = {
  completed: DONE,
  finished: DONE,
  paused: STOPPED,
  max_steps: STOPPED,
  iteration_limit: STOPPED,
  time_limit: STOPPED,
  budget_limit: STOPPED,
  token_limit: STOPPED,
  stuck: STOPPED,
  content_filter: STOPPED,
  hook: STOPPED,
  rejected: STOPPED,
  error: FAILED,
  server_restart: FAILED,
  owner_lost: FAILED,
  superseded: FAILED,
  cancelled: FAILED,
}

export function exitCodeOf({ result, denied }: TurnEnd): number {
  if (!result) return FAILED
  const code = CODES[result.stop_reason]
  return code === DONE && denied.length > 0 ? STOPPED : code
}

/** One line; undefined if there is nothing to say. `isKept`: whether the conversation can be continued. */
export function explainEnd({ result, error, denied, steps }: TurnEnd, isKept: boolean): string | undefined {
  if (error) return oneLine(`${error.message} (${error.error_type})`)
  if (!result) return 'the run ended without a result; its conversation has the events.'
  if (denied.length > 0) return explainDenials(denied)
  const code = CODES[result.stop_reason]
  if (code === DONE) return undefined
  const how = isKept ? ` Continue with --resume ${result.conversation_id}` : ''
  return `the run was stopped: ${result.stop_reason} after ${steps} steps.${how}`
}

function explainDenials(deniedCalls: TurnEnd['denied']): string {
  const calls = deniedCalls.length === 1 ? '1 call was' : `${deniedCalls.length} calls were`
  const tools = [...new Set(deniedCalls.map(({ tool }) => tool))].join(', ')
  const rules = [...new Set(deniedCalls.flatMap((each) => each.rules))].filter(isSimple).slice(0, MAX_RULES)
  const byRule = rules.length > 0 ? `--allowed-tools '${rules.join(', ')}' or ` : ''
  return `${calls} denied, because nobody can approve: ${tools}. Allow such calls with ${byRule}--permission-mode bypass.`
}

/** The rules of the suggestion, which people paste into a shell: the text of a rule is from the model. */
const MAX_RULES = 5
const isSimple = (rule: string): boolean => !/['\p{Cc}]/u.test(rule)
