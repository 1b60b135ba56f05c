/**
 * One open conversation: everything that routes may ask of it, and its life from `start` to `dispose`. It only ties parts
 * together: `build.ts` makes them, `actor.ts` puts what is asked in order.
 */
import type { AgentInfo } from '../contract/agent-info.ts'
import type { ConversationView, UpdateConfig } from '../contract/conversation.ts'
import type { EventOf } from '../contract/events/event.ts'
import type { Status } from '../contract/events/status.ts'
import { partsOf } from '../contract/message.ts'
import type { PostedMessage, PostMessage, RunOutcome, RunRequest } from '../contract/run.ts'
import type { EventLog, LogEnd } from '../events/event-log.ts'
import { uuid7 } from '../lib/uuid7.ts'
import type { Redactor } from '../security/redaction/redactor.ts'
import type { ToolCalls } from '../agent/tool-calls.ts'
import type { ConversationActor } from './actor.ts'
import type { Approvals } from './approvals/approvals.ts'
import type { NetworkApprovals } from './approvals/network-approvals.ts'
import type { ClientEvents } from './client-events.ts'
import { closedProblem } from './closed-problem.ts'
import { describeAgent } from './config/agent-info.ts'
import type { ClientSecrets } from './config/client-secrets.ts'
import { redactLongParts } from './config/redact-parts.ts'
import type { ConversationSecrets } from './config/secrets.ts'
import { configureConversation } from './configure.ts'
import type { ConversationDeps } from './dependencies.ts'
import type { ClientCommands } from './exec/client-commands.ts'
import type { ConversationProcesses } from './exec/conversation-processes.ts'
import type { ConversationShells } from './exec/conversation-shells.ts'
import type { ConversationFiles } from './files/files.ts'
import type { Idempotency, PostedKey } from './idempotency/idempotency.ts'
import { answerTo } from './idempotency/idempotency.ts'
import { postOnce } from './idempotency/posted-keys.ts'
import type { ConversationNetwork } from './network.ts'
import { waitForRun } from './runs/wait-for-run.ts'
import type { LiveState } from './state/live-state.ts'
import type { RecoveryReason } from './state/run-end.ts'
import type { State } from './state/state.ts'
import { viewOf } from './state/view.ts'
import type { Tasks } from './tasks/tasks.ts'
import type { CallbackSet } from './webhooks/callback-set.ts'
import type { Webhooks } from './webhooks/webhooks.ts'

/** The parts that clients reach. */
export type ClientParts = {
  readonly log: EventLog
  readonly files: ConversationFiles
  readonly exec: Exec
  readonly webhooks: Webhooks
  readonly approvals: Approvals
  readonly secrets: ClientSecrets
  readonly network: NetworkApprovals
  readonly clientEvents: ClientEvents
}

/** What clients run in a conversation, beside its agent. */
export type Exec = {
  readonly commands: ClientCommands
  readonly processes: ConversationProcesses
  readonly shells: Pick<ConversationShells, 'list' | 'end'>
}

/** The parts that only the conversation itself uses. */
export type InnerParts = {
  readonly actor: ConversationActor
  readonly state: LiveState
  readonly toolCalls: ToolCalls
  readonly secrets: ConversationSecrets
  readonly network: ConversationNetwork
  readonly shells: ConversationShells
  readonly deliveries: CallbackSet
  readonly redactor: Redactor
}

export class Conversation {
  readonly log: EventLog
  readonly files: ConversationFiles
  readonly exec: Exec
  readonly webhooks: Webhooks
  readonly tasks: Tasks
  readonly approvals: Approvals
  readonly secrets: ClientSecrets
  readonly network: NetworkApprovals
  readonly clientEvents: ClientEvents
  /** Delivers events to webhooks; what clients may ask of that is in `webhooks`. */
  readonly deliveries: Pick<CallbackSet, 'settle'>
  readonly redact: (text: string) => string
  readonly #deps: ConversationDeps
  readonly #inner: InnerParts
  readonly #actor: ConversationActor
  readonly #state: LiveState

  constructor(deps: ConversationDeps, parts: ClientParts, inner: InnerParts) {
    this.log = parts.log
    this.files = parts.files
    this.exec = parts.exec
    this.webhooks = parts.webhooks
    this.tasks = inner.actor.tasks
    this.approvals = parts.approvals
    this.secrets = parts.secrets
    this.network = parts.network
    this.clientEvents = parts.clientEvents
    this.deliveries = inner.deliveries
    this.redact = inner.redactor.redact
    this.#deps = deps
    this.#inner = inner
    this.#actor = inner.actor
    this.#state = inner.state
  }

  get id(): string {
    return this.log.conversationId
  }

  /** The fold of the log: what may be noted elsewhere. */
  get state(): State {
    return this.#state.current
  }

  /** Whether the log can't be trusted any more and has to be opened again. */
  get failed(): boolean {
    return this.log.failed
  }

  /** Whether a run began here: one that is `running` in the log then belongs to no other process. */
  get hasRun(): boolean {
    return this.#actor.hasRun
  }

  /** Whether something is done here, or is about to be, that a stop of the server would cut off. */
  get isWorking(): boolean {
    return this.#actor.isWorking
  }

  view(): ConversationView {
    return viewOf(this.#actor.shown)
  }

  async agentInfo(): Promise<AgentInfo> {
    const { settings } = this.#state.current
    return await describeAgent({
      settings,
      log: this.log,
      tools: this.#inner.toolCalls.descriptions,
      isolation: this.#deps.server.isolation,
      network: this.#inner.network.shown,
      resourceLimits: this.#deps.limits.inForce(settings.limits),
    })
  }

  /** The same key and body again, within a day, is the same message: it is answered as it was, and posted once. */
  post({ message, run }: PostMessage, idempotency?: Idempotency): Promise<PostedMessage> {
    const { redact, redactInSlices } = this.#inner.redactor
    const { log } = this
    const make = async (): Promise<PostedMessage> => {
      const content = await redactLongParts(partsOf(message.content), redactInSlices)
      const sender = message.sender === undefined ? {} : { sender: redact(message.sender) }
      const ids = { begun: this.#actor.begunCalls(), newRunId: uuid7() }
      const intent = { kind: 'message', content, ...sender, run, ...ids, now: Date.now() } as const
      const events = await this.#actor.apply({ ...intent, ...(idempotency && { idempotency }) })
      const posted = events.find((event): event is EventOf<'UserMessage'> => event.type === 'UserMessage')
      // oxlint-disable-next-line typescript/no-non-null-assertion -- each message is an event
      return answerTo(posted!)
    }
    const again = async ({ answer }: PostedKey) => answer
    return this.#actor.inTurn(() =>
      postOnce(idempotency, { log, redact, remembered: this.#state.current.postedKeys, again, make }),
    )
  }

  /** Starts a run and returns its id. */
  run({ max_steps }: Pick<RunRequest, 'max_steps'> = {}): Promise<string> {
    return this.#actor.inTurn(async () => {
      const newRunId = uuid7()
      await this.#actor.apply({ kind: 'run', newRunId, ...(max_steps !== undefined && { maxSteps: max_steps }) })
      return newRunId
    })
  }

  /** Resolves when the run has ended or waits for somebody, and at the latest after `timeout` seconds. */
  async waitForRun(runId: string, timeout: number, signal: AbortSignal): Promise<RunOutcome> {
    const isOver = () => this.#actor.shown.run?.id !== runId || this.#actor.shown.status !== 'running'
    const watch = (onChange: () => void) => this.#actor.watchUnstored(onChange)
    const result = await waitForRun(this.log, { runId, isOver, watch, timeoutMs: Math.ceil(timeout * 1000), signal })
    return { run_id: runId, status: this.#actor.shown.status, ...(result && { result }) }
  }

  /**
   * Stops the run, if there is one, and returns the status then. The model call ends at once; a tool continues by itself,
   * unless `interrupt` ends it. `interrupt` also gives up the calls that have not begun; else they begin with the next run.
   */
  async pause({ interrupt, reason = 'pause' }: { interrupt: boolean; reason?: string }): Promise<Status> {
    await this.#actor.pause({ interrupt, reason })
    return this.#actor.shown.status
  }

  /** Returns the view, with warnings and with the credentials that the update has dropped. */
  async configure(update: UpdateConfig): Promise<ConversationView> {
    const parts = { ...this.#inner, redact: this.redact }
    const { warnings, dropped } = await configureConversation(this.#deps, parts, update)
    return {
      ...this.view(),
      ...(warnings.length > 0 && { warnings: [...warnings] }),
      ...(dropped.length > 0 && { dropped: [...dropped] }),
    }
  }

  async setConfirmation(enabled: boolean): Promise<ConversationView> {
    await this.#actor.configure(async ({ settings }) => ({
      changes: (settings.confirmation_mode ?? false) === enabled ? {} : { confirmation_mode: enabled },
    }))
    return this.view()
  }

  /** Recovers what was left half done, and begins to deliver. Once, for a conversation that was opened from its log. */
  async start(why: RecoveryReason): Promise<void> {
    await this.#actor.recover(why)
    await this.#inner.deliveries.start()
  }

  /** Stores what could not be stored so far; throws when it still cannot be. */
  async settle(): Promise<void> {
    await this.#actor.settle()
  }

  /** Whether closing it would end or lose nothing: no run, command, process, question or due delivery. */
  async isAtRest(): Promise<boolean> {
    const { network, deliveries, shells } = this.#inner
    const waits = network.pending().items.length > 0 || deliveries.hasDue
    return this.#actor.isAtRest && this.exec.commands.isIdle && !waits && !(await shells.areRunning())
  }

  /** Ends it with everything it started. */
  async dispose(outcome: LogEnd): Promise<void> {
    const { network, deliveries, shells } = this.#inner
    this.#actor.halt()
    try {
      network.close()
      // What is deleted need not end cleanly, and no command may hold the delete up.
      if (outcome === 'deleted') await shells.close()
      // First of all: the log gets how they ended.
      await this.exec.commands.close()
      // What is being sent would hold up the end of the log.
      await deliveries.close(outcome)
      await this.files.close(closedProblem(outcome))
      await this.#actor.close(outcome)
    } finally {
      await shells.close()
    }
  }
}
