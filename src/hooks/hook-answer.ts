/** Reads what a hook answered: the JSON of Claude Code's hooks, or plain text. The only file that knows what its fields mean. */
import type { HookPoint } from '../contract/hooks/hook-point.ts'
import type { SpecificOutput } from '../contract/hooks/hook-output.ts'
import { HookOutput } from '../contract/hooks/hook-output.ts'
import { parseUntrustedJson } from '../lib/json/untrusted-json.ts'

/** What a hook wants. Empty: everything continues unchanged. */
export type HookAnswer = {
  /** Why what was about to happen must not happen, or must not be the end. */
  readonly block?: string
  /** The decision about a tool call. `deny` has its reason in `reason`. */
  readonly decision?: 'allow' | 'ask' | 'deny'
  readonly reason?: string
  /** The run ends. */
  readonly stop?: string
  readonly updatedInput?: Readonly<Record<string, unknown>>
  readonly updatedOutput?: { readonly value: unknown }
  readonly updatedMessages?: unknown
  readonly updatedText?: string
  /** The text for the model. */
  readonly context?: string
  /** The text for the user. */
  readonly message?: string
}

/** What was observed of one hook. `blocked`: exit code 2, with its standard error. */
export type HookEnd =
  | { readonly kind: 'answered'; readonly answer: HookAnswer }
  | { readonly kind: 'blocked'; readonly reason: string }
  | { readonly kind: 'warned'; readonly warning: string }
  | { readonly kind: 'failed'; readonly why: string }

/** The answer cannot be read; the message is a clause. */
export class UnreadableAnswer extends Error {
  override readonly name = 'UnreadableAnswer'
}

/** The points at which text that is not JSON is context for the model. */
const TEXT_IS_CONTEXT: ReadonlySet<HookPoint> = new Set(['UserPromptSubmit', 'SessionStart'])

/** Throws `UnreadableAnswer` for a JSON object that is not an answer. Other text is context, or ignored. */
export function readAnswer(point: HookPoint, text: string): HookAnswer {
  const trimmedText = text.trim()
  if (!trimmedText.startsWith('{'))
    return trimmedText !== '' && TEXT_IS_CONTEXT.has(point) ? { context: trimmedText } : {}
  const output = HookOutput.safeParse(parse(trimmedText))
  if (!output.success) {
    const { path = [], message = '' } = output.error.issues[0] ?? {}
    throw new UnreadableAnswer(`its answer does not have the expected form (${path.join('.')}: ${message})`)
  }
  const { hookEventName } = output.data.hookSpecificOutput ?? {}
  if (hookEventName !== undefined && hookEventName !== point)
    throw new UnreadableAnswer('hookSpecificOutput.hookEventName names another point')
  return answerOf(point, output.data)
}

function parse(text: string): unknown {
  try {
    return parseUntrustedJson(text)
  } catch {
    throw new UnreadableAnswer('its answer begins like a JSON object and is not valid JSON')
  }
}

function answerOf(point: HookPoint, output: HookOutput): HookAnswer {
  const { hookSpecificOutput: specific, systemMessage } = output
  return {
    ...decisionOf(point, output),
    ...(output.continue === false && { stop: output.stopReason ?? 'A hook stopped the run.' }),
    ...(specific && updatesOf(specific)),
    ...contextOf(point, specific),
    ...(systemMessage !== undefined && { message: systemMessage }),
  }
}

function contextOf(point: HookPoint, specific: SpecificOutput | undefined): Pick<HookAnswer, 'context'> {
  const mayRetry = point === 'PermissionDenied' && specific?.retry === true
  const texts = [specific?.additionalContext, mayRetry ? MAY_RETRY : undefined].filter(Boolean)
  return texts.length > 0 ? { context: texts.join('\n') } : {}
}

const MAY_RETRY = 'You may try this call again.'

function decisionOf(point: HookPoint, { decision, reason, hookSpecificOutput: specific }: HookOutput): HookAnswer {
  if (point === 'PermissionRequest' && specific?.decision) {
    const { behavior, message, updatedInput, interrupt } = specific.decision
    return {
      decision: behavior,
      ...(message !== undefined && { reason: message }),
      ...(behavior === 'allow' && updatedInput && { updatedInput }),
      ...(behavior === 'deny' && interrupt && { stop: message ?? 'A hook denied a call and stopped the run.' }),
    }
  }
  if (point !== 'PreToolUse' && point !== 'PermissionRequest')
    return decision === 'block' ? { block: reason ?? NO_REASON } : {}
  const { permissionDecision, permissionDecisionReason } = specific ?? {}
  const why = permissionDecisionReason ?? reason
  const reasons = why === undefined ? {} : { reason: why }
  if (permissionDecision !== undefined)
    return permissionDecision === 'defer' ? {} : { decision: permissionDecision, ...reasons }
  return decision === undefined ? {} : { decision: decision === 'approve' ? 'allow' : 'deny', ...reasons }
}

export const NO_REASON = 'It gave no reason.'

function updatesOf({
  updatedInput,
  updatedToolOutput,
  updatedMCPToolOutput,
  updatedMessages,
  updatedText,
}: SpecificOutput) {
  const output = updatedToolOutput ?? updatedMCPToolOutput
  return {
    ...(updatedInput && { updatedInput }),
    ...(output !== undefined && { updatedOutput: { value: output } }),
    ...(updatedMessages !== undefined && { updatedMessages }),
    ...(updatedText !== undefined && { updatedText }),
  }
}
