/** Has the program decide about the tool calls that wait for a permission. */
import { AgentServerError } from '../../client/request/agent-server-error.ts'
import type { ToolDecision } from '../../contract/values/permission.ts'
import type { Status } from '../../contract/events/status.ts'
import { orAborted } from '../../lib/bounded-wait.ts'
import { z } from 'zod'
import type { CanUseTool, PermissionVerdict } from '../options/query-options.ts'
import { repeatLost } from '../errors/repeat-lost.ts'
import type { Answerer, OpenedRequest, Work } from './request-responder.ts'
import type { ResponderDeps } from './responder.ts'
import { messageOf } from './responder.ts'

export class ApprovalAnswerer implements Answerer {
  readonly #deps: ResponderDeps
  readonly #decide: CanUseTool
  /** Decisions that end the run, and are not stored yet. */
  #interrupting = 0

  constructor(deps: ResponderDeps, decide: CanUseTool) {
    this.#deps = deps
    this.#decide = decide
  }

  workOn(event: OpenedRequest): Work[] {
    if (event.kind !== 'permission') return []
    return event.payload.tool_uses.map((call) => ({
      toolUseId: call.tool_use_id,
      run: (signal) => this.#answer(event, call, signal),
    }))
  }

  mayAnswer(status: Status): boolean {
    return status === 'waiting_for_confirmation' || this.#interrupting > 0
  }

  async #answer(event: PermissionOpened, call: PermissionCall, signal: AbortSignal): Promise<void> {
    const verdict = await this.#verdictOn(event, call, signal)
    if (verdict.behavior === 'deny' && verdict.interrupt) return await this.#denyPaused(event, call, verdict, signal)
    await this.#send(event, call, verdict, signal).catch((error: unknown) => {
      // Such as an input that does not fit the tool.
      if (verdict.behavior === 'deny' || !(error instanceof AgentServerError) || error.status !== 400) throw error
      return this.#send(event, call, failure(error.message), signal)
    })
  }

  /** Pauses before the decision, with which the run would continue. */
  async #denyPaused(...[event, call, verdict, signal]: Deciding): Promise<void> {
    this.#interrupting++
    try {
      await repeatLost(() => this.#deps.conversation.pause({}, { signal }), signal)
      await this.#send(event, call, verdict, signal)
    } finally {
      this.#interrupting--
      this.#deps.onDeclined()
    }
  }

  async #send(...[event, { tool_use_id, input_hash }, verdict, signal]: Deciding): Promise<void> {
    const decisions = [{ tool_use_id, input_hash, ...decisionOf(verdict) }]
    const { requests } = this.#deps.conversation
    await repeatLost(() => requests.answer(event.request_id, { kind: 'permission', decisions }, { signal }), signal)
  }

  /** An approver that fails denies. */
  async #verdictOn(
    { conversation_id: sessionId }: PermissionOpened,
    { tool_use_id: toolUseId, name, input, reason, rules }: PermissionCall,
    signal: AbortSignal,
  ): Promise<PermissionVerdict> {
    try {
      const asking = async () => this.#decide(name, input, { signal, sessionId, toolUseId, reason, rules })
      const verdict = Verdict.parse(await orAborted(asking(), signal))
      // Throws for what is not JSON.
      if (verdict.behavior === 'allow') JSON.stringify(verdict.updatedInput)
      return verdict
    } catch (error) {
      signal.throwIfAborted()
      return failure(error instanceof z.ZodError ? faultOf(error) : messageOf(error))
    }
  }
}

function faultOf({ issues: [fault] }: z.ZodError): string {
  const field = fault?.path.join('.') ?? ''
  return field === '' || field === 'behavior'
    ? 'it returned neither { behavior: "allow" } nor { behavior: "deny" }'
    : `what it returned has a wrong ${field}: ${fault?.message}`
}

const failure = (why: string): PermissionVerdict => ({
  behavior: 'deny',
  message: `The approver failed: ${why}`.slice(0, MAX_MESSAGE_CHARS),
})

type PermissionOpened = Extract<OpenedRequest, { kind: 'permission' }>

type Deciding = [PermissionOpened, PermissionCall, PermissionVerdict, AbortSignal]

type PermissionCall = PermissionOpened['payload']['tool_uses'][number]

const MAX_MESSAGE_CHARS = 10_000

const Verdict = z.discriminatedUnion('behavior', [
  z.object({
    behavior: z.literal('allow'),
    updatedInput: z.record(z.string(), z.unknown()).optional(),
    remember: z.boolean().optional(),
  }),
  z.object({
    behavior: z.literal('deny'),
    message: z.string().max(MAX_MESSAGE_CHARS).optional(),
    remember: z.boolean().optional(),
    interrupt: z.boolean().optional(),
  }),
])

function decisionOf(
  verdict: PermissionVerdict,
): Pick<ToolDecision, 'behavior' | 'updated_input' | 'message' | 'remember'> {
  const { behavior, remember } = verdict
  const keptWish = { ...(remember !== undefined && { remember }) }
  return verdict.behavior === 'allow'
    ? { behavior, ...keptWish, ...(verdict.updatedInput && { updated_input: verdict.updatedInput }) }
    : { behavior, ...keptWish, ...(verdict.message !== undefined && { message: verdict.message }) }
}
