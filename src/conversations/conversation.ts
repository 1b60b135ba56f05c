/**
 * One open conversation: all that routes can do with it, from `start` to `dispose`. `build.ts` creates its parts.
 */
import type { AgentInfo } from '../contract/agent-info.ts'
import type { ConversationView, UpdateConfig } from '../contract/conversation.ts'
import type { Status } from '../contract/events/status.ts'
import type { PostMessage, RunOutcome, RunRequest } from '../contract/run.ts'
import type { EventLog, LogEnd } from '../events/event-log.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { ToolCalls } from '../agent/tool-calls.ts'
import type { HandedOverCalls } from './client-tools/handed-over-calls.ts'
import type { ConversationActor } from './actor.ts'
import type { ClientEvents } from './client-events.ts'
import type { ClientHooks } from './client-hooks/client-hooks.ts'
import { closedProblem } from '../events/closed-problem.ts'
import { describeAgent } from './agent-info.ts'
import type { ClientSecrets } from './config/client-secrets.ts'
import type { ConversationSecrets } from './config/secrets.ts'
import { configureConversation } from './configure.ts'
import type { ConversationDeps } from './dependencies.ts'
import type { ClientExec } from '../workspace/exec/client-exec.ts'
import type { ConversationShells } from '../workspace/exec/conversation-shells.ts'
import type { ConversationFiles } from '../workspace/files/files.ts'
import type { Feature } from './agents/feature.ts'
import type { ConversationHooks } from './hooks/conversation-hooks.ts'
import type { Idempotency } from '../state/idempotency.ts'
import type { ClientMcp } from './mcp.ts'
import { MessagePosts, type MessageAnswer, type PostSteps } from './message-posts.ts'
import { MessageWithdrawals } from './message-withdrawals.ts'
import type { ConversationNetwork } from '../workspace/network.ts'
import type { PostedCommands } from './project/posted-commands.ts'
import type { Permissions } from './requests/permissions.ts'
import type { Requests } from './requests/requests.ts'
import type { Compactions } from './runs/compactions.ts'
import type { Titles } from './runs/titles.ts'
import { waitForRun } from './runs/wait-for-run.ts'
import { checkOutputSchema } from './config/check-output-schema.ts'
import type { LiveState } from './live/live-state.ts'
import { requestedRun, type RunRequestOptions } from './runs/requested-run.ts'
import type { RecoveryReason } from '../state/run-end.ts'
import type { ConversationRules } from './config/permission-rules.ts'
import type { State } from '../state/state.ts'
import { withContextSize } from './registry/context-size.ts'
import { viewOf } from '../state/view.ts'
import type { RewindRequest } from '../contract/rewind.ts'
import { rewindConversation, type RewindOptions } from './rewind.ts'
import { stopSubagent } from './subagent-stop.ts'
import type { CallbackSet } from '../webhooks/callback-set.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { followMoved } from '../workspace/workdirs/moved-workdirs.ts'

/** The parts that clients can reach. */
export type ClientParts = {
  readonly log: EventLog
  readonly files: ConversationFiles
  readonly exec: ClientExec
  readonly webhooks: Webhooks
  readonly requests: Requests
  readonly permissions: Permissions
  readonly clientHooks: ClientHooks
  readonly secrets: ClientSecrets
  readonly rules: ConversationRules
  readonly mcp: ClientMcp
  readonly clientEvents: ClientEvents
  readonly compactions: Compactions
}

/** The parts that only the conversation itself uses. */
export type InnerParts = {
  readonly actor: ConversationActor
  readonly state: LiveState
  readonly toolCalls: ToolCalls
  readonly hooks: Feature<ConversationHooks>
  readonly secrets: ConversationSecrets
  readonly network: ConversationNetwork
  readonly postedCommands: PostedCommands
  readonly shells: ConversationShells
  readonly handedOver: HandedOverCalls
  readonly deliveries: CallbackSet
  readonly redactor: Redactor
  readonly titles: Titles
  readonly forgetEdits: () => Promise<void>
}

export class Conversation {
  readonly log: EventLog
  readonly files: ConversationFiles
  readonly exec: ClientExec
  readonly webhooks: Webhooks
  readonly requests: Requests
  readonly permissions: Permissions
  readonly clientHooks: ClientHooks
  readonly secrets: ClientSecrets
  readonly rules: ConversationRules
  readonly mcp: ClientMcp
  readonly clientEvents: ClientEvents
  readonly compactions: Compactions
  readonly messages: MessagePosts
  readonly withdrawals: MessageWithdrawals
  /** Delivers events to webhooks; clients manage webhooks through `webhooks`. */
  readonly deliveries: Pick<CallbackSet, 'settle'>
  readonly redact: (text: string) => string
  /** See `Redactor.redactAnyCase`. */
  readonly redactAnyCase: (text: string) => string
  readonly #deps: ConversationDeps
  readonly #inner: InnerParts
  readonly #actor: ConversationActor
  readonly #state: LiveState

  constructor(deps: ConversationDeps, parts: ClientParts, inner: InnerParts) {
    this.log = parts.log
    this.files = parts.files
    this.exec = parts.exec
    this.webhooks = parts.webhooks
    this.requests = parts.requests
    this.permissions = parts.permissions
    this.clientHooks = parts.clientHooks
    this.secrets = parts.secrets
    this.rules = parts.rules
    this.mcp = parts.mcp
    this.clientEvents = parts.clientEvents
    this.compactions = parts.compactions
    this.deliveries = inner.deliveries
    this.redact = inner.redactor.redact
    this.redactAnyCase = inner.redactor.redactAnyCase
    this.#deps = deps
    this.#inner = inner
    this.#actor = inner.actor
    this.#state = inner.state
    this.messages = new MessagePosts(parts.log, { ...inner, models: deps.models })
    this.withdrawals = new MessageWithdrawals(parts.log, { ...inner, compactions: parts.compactions })
  }

  get id(): string {
    return this.log.conversationId
  }

  get tasks() {
    return this.#actor.tasks
  }

  /** The state folded from the log, which others may cache. */
  get state(): State {
    return this.#state.current
  }

  /** True if a run began in this process: a run that is `running` in the log then belongs to no other process. */
  get hasRun(): boolean {
    return this.#actor.hasRun
  }

  /** True if work is active or about to begin that a server shutdown would interrupt. */
  get isWorking(): boolean {
    return this.#actor.isWorking
  }

  view(): ConversationView {
    return withContextSize(viewOf(this.#actor.shown), this.#deps.models.catalog)
  }

  async agentInfo(): Promise<AgentInfo> {
    const { settings } = this.#state.current
    return await describeAgent({
      settings,
      log: this.log,
      tools: this.#inner.toolCalls.descriptions,
      mcpServers: this.mcp.view().items,
      isolation: this.#deps.server.isolation,
      network: this.#inner.network.shown,
      resourceLimits: this.#deps.limits.inForce(settings.limits),
    })
  }

  /** Idempotent: the same key and body within a day returns the earlier response, and the message is posted once. */
  readonly post = (message: PostMessage, idempotency?: Idempotency, steps?: PostSteps): Promise<MessageAnswer> =>
    this.messages.post(message, idempotency, steps)

  /** Starts a run and returns its id. */
  async run({
    after_seq: afterSeq,
    ...wishes
  }: RunRequestOptions & Pick<Partial<RunRequest>, 'after_seq'> = {}): Promise<string> {
    if (wishes.output_schema) await checkOutputSchema(wishes.output_schema)
    const work = requestedRun(wishes, this.#state.current.settings, { ...this.#deps.models, redact: this.redact })
    return this.#actor.enqueue(async () => {
      const newRunId = uuid7()
      await this.#actor.apply({ kind: 'run', newRunId, ...work, ...(afterSeq !== undefined && { afterSeq }) })
      return newRunId
    })
  }

  /** Resolves when the run has ended or waits for a user, and at the latest after `timeout` seconds. */
  async waitForRun(runId: string, timeout: number, signal: AbortSignal): Promise<RunOutcome> {
    const isOver = () => this.#actor.shown.run?.id !== runId || this.#actor.shown.status !== 'running'
    const watch = (onChange: () => void) => this.#actor.watchUnstored(onChange)
    const end = await waitForRun(this.log, { runId, isOver, watch, timeoutMs: Math.ceil(timeout * 1000), signal })
    return { run_id: runId, status: this.#actor.shown.status, ...end }
  }

  /**
   * Stops the active run, if any, and returns the status afterwards. The model call ends at once; a running tool
   * continues unless `interrupt` ends it. `interrupt` also cancels the calls that have not begun; otherwise they begin
   * with the next run.
   */
  async pause({ interrupt, reason = 'pause' }: { interrupt: boolean; reason?: string }): Promise<Status> {
    await this.#actor.pause({ interrupt, reason })
    return this.#actor.shown.status
  }

  /** Returns the view, with warnings and the credentials that the update dropped. */
  async configure(update: UpdateConfig): Promise<ConversationView> {
    const parts = { ...this.#inner, mcp: this.mcp }
    const { warnings, dropped } = await configureConversation(this.#deps, parts, update)
    return {
      ...this.view(),
      ...(warnings.length > 0 && { warnings: [...warnings] }),
      ...(dropped.length > 0 && { dropped: [...dropped] }),
    }
  }

  readonly stopSubagent = (agentId: string) => stopSubagent({ log: this.log, actor: this.#actor }, agentId)

  rewind(request: RewindRequest, options: RewindOptions) {
    const { log, exec, files, compactions, redact } = this
    return rewindConversation({ ...this.#inner, log, exec, files, compactions, redact }, request, options)
  }

  async setConfirmation(isEnabled: boolean): Promise<ConversationView> {
    await this.#actor.configure(async ({ settings }) => ({
      changes: (settings.confirmation_mode ?? false) === isEnabled ? {} : { confirmation_mode: isEnabled },
    }))
    return this.view()
  }

  /**
   * Recovers unfinished work, if there may be any, and starts webhook deliveries. Call it once, for a conversation that
   * was opened from its log.
   */
  async start(why: RecoveryReason | undefined): Promise<void> {
    await followMoved(this.#deps, { id: this.id, log: this.log, settings: this.state.settings })
    await this.#actor.recover(why)
    await this.#inner.deliveries.start()
  }

  /** Stores the pending intent; throws if it still cannot be stored. */
  readonly settle = (): Promise<void> => this.#actor.settle()

  /**
   * Ends its shells that have been idle for `ms`; the next command starts them with their state. During a run they stay:
   * the agent uses what it has set, and not all of that is in the state.
   */
  async closeIdleShells(ms: number): Promise<void> {
    if (this.state.status !== 'running') await this.#inner.shells.closeIdle(ms)
  }

  /** True if closing it would end or lose nothing: no run, command, process, question or due delivery. */
  async isAtRest(): Promise<boolean> {
    const { network, deliveries, shells, hooks } = this.#inner
    const waits = network.pending().length > 0 || deliveries.hasDue || hooks.built?.isIdle === false
    return this.#actor.isAtRest && this.#isIdle && !waits && !(await shells.areRunning())
  }

  /** True between two steps: closing it now would cut off no call, command or job. */
  get canLeave(): boolean {
    return this.#actor.canLeave && this.#isIdle
  }

  get #isIdle(): boolean {
    return this.exec.commands.isIdle && this.compactions.isIdle && this.#inner.titles.isIdle
  }

  /** Ends the conversation with everything it started. */
  async dispose(outcome: LogEnd): Promise<void> {
    const { network, deliveries, shells, hooks, handedOver } = this.#inner
    this.#actor.halt()
    if (outcome === 'closing') handedOver.close()
    try {
      await hooks.built?.close(outcome)
      network.close()
      const mcpClosing = this.mcp.close()
      // A deleted conversation need not end cleanly, and no command may delay the deletion.
      if (outcome === 'deleted') await shells.close('discarded')
      // Close the commands first: their ends are logged.
      await this.exec.commands.close()
      // A delivery in progress would delay the end of the log.
      await deliveries.close(outcome)
      await this.files.close(closedProblem(outcome))
      await this.compactions.close(closedProblem(outcome))
      await this.#inner.titles.close()
      await mcpClosing
      await this.#actor.close(outcome)
    } finally {
      await shells.close()
    }
  }
}
