/** Follows one session for a query: posts the messages of the prompt, has the program answer, and yields the events. */
import { setImmediate } from 'node:timers/promises'
import type { ConversationHandle } from '../../client/conversation/conversation-handle.ts'
import type { Event } from '../../contract/events/event.ts'
import type { TransientEvent } from '../../contract/events/transient-event.ts'
import type { Status } from '../../contract/events/status.ts'
import { isForPeople } from '../../contract/requests/request-forms.ts'
import type { UserInput } from '../../contract/values/message.ts'
import { settlesWithin } from '../../lib/bounded-wait.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import { repeatLost } from '../errors/repeat-lost.ts'
import type { OwnOptions } from '../options/other-names.ts'
import type { Prompt, QueryOptions } from '../options/query-options.ts'
import { outputSchemaOf } from '../options/request-bodies.ts'
import { BackgroundWork } from './background-work.ts'
import type { PendingRequestEvent } from './stopped-session.ts'
import { AT_REST, continueStopped, hasWork, onlySubagentsWait } from './stopped-session.ts'
import type { OpenSession } from './open-session.ts'
import { nothingLeft } from './open-session.ts'
import { PromptPump } from './prompt-pump.ts'
import { Turns } from './turns.ts'
import { splitTools } from '../options/split-tools.ts'
import { ApprovalAnswerer } from '../answers/approvals.ts'
import { QuestionAnswerer } from '../answers/questions.ts'
import { RequestResponder } from '../answers/request-responder.ts'
import { createTerminalApprover } from '../answers/terminal-approver.ts'
import type { ToolAnswererDeps } from '../answers/tool-calls.ts'
import { ToolAnswerer } from '../answers/tool-calls.ts'

export type FollowSessionOptions = {
  /** Undefined: the session continues where it stopped. */
  readonly prompt: Prompt | undefined
  readonly options: OwnOptions
  /** See `ServerLink`. */
  readonly executing: Set<string>
  /** The query fails when the server ends: a run that was cut off is not its end. */
  readonly failsWithServer: boolean
  /** Aborted when the query ends. */
  readonly signal: AbortSignal
  /** Called while the reader waits for an event that will not come. Aborts the signal. */
  readonly onOver: () => void
  /** Called with an error of what works in the background. Aborts the signal. */
  readonly fail: (error: unknown) => void
}

/** How long the end of a query waits for the server to stop its run, in milliseconds. */
const STOP_MS = 5000
/** The same for a message that is being sent. */
const POST_MS = 2000

/** Ends when the messages have been answered, or wait for somebody else. Stops the run if the reader ends earlier. */
export async function* followSession(
  session: OpenSession,
  options: FollowSessionOptions,
): AsyncGenerator<Event | TransientEvent, void, undefined> {
  const following = new FollowedSession(session, options)
  try {
    yield* following.events()
  } finally {
    await following.close()
  }
}

class FollowedSession {
  readonly #session: OpenSession
  readonly #conversation: ConversationHandle
  readonly #options: FollowSessionOptions
  readonly #turns: Turns
  readonly #background: BackgroundWork
  readonly #responder: RequestResponder
  readonly #pump: PromptPump
  /** The end of the query waits for it: a message that arrives after the run was stopped would start another one. */
  #posting: Promise<unknown> = Promise.resolve()
  readonly #posts = new AbortController()
  /** True when the prompt has no more messages. */
  #isPrompted = false

  constructor(session: OpenSession, options: FollowSessionOptions) {
    const { conversation, status, after, waiting } = session
    const { fail, executing } = options
    this.#session = session
    this.#conversation = conversation
    this.#options = options
    this.#turns = new Turns({ status, seq: after })
    this.#background = new BackgroundWork(AT_REST.has(status) ? waiting : [])
    const endIfOver = () => this.#endIfOver()
    this.#responder = createResponder(options.options, { conversation, fail, executing, onDeclined: endIfOver })
    this.#pump = new PromptPump(options.prompt, {
      post: (content, isFirst) => (this.#posting = this.#post(content, isFirst)),
      onEnd: (isEmpty) => this.#onPrompted(isEmpty),
      onError: fail,
    })
  }

  async *events(): AsyncGenerator<Event | TransientEvent, void, undefined> {
    const { signal, options } = this.#options
    const deltas = options.includePartialMessages ?? false
    this.#pump.start()
    for (const event of await this.#requestsToRepeat()) {
      this.#responder.take(event)
      yield event
    }
    for await (const event of this.#conversation.events({ after: this.#session.after, deltas, signal })) {
      if ('seq' in event) {
        this.#turns.take(event)
        this.#background.take(event)
        this.#responder.take(event)
      }
      yield event
      if (await this.#isOver()) return
    }
  }

  async close(): Promise<void> {
    this.#pump.close()
    this.#responder.close()
    const isSent = this.#posting.catch(() => {}) // the pump has its error
    await settlesWithin(POST_MS, isSent)
    this.#posts.abort()
    if (this.#turns.isSettled && !this.#waitsForSubagents) return
    // Best effort: the server may be about to end, too.
    const signal = AbortSignal.timeout(STOP_MS)
    await repeatLost(() => this.#conversation.pause({ interrupt: true }, { signal }), signal).catch(() => {})
  }

  /** Returns what must be asked again: nothing if a message has come already, which replaces decisions and answers. */
  async #requestsToRepeat(): Promise<readonly PendingRequestEvent[]> {
    const { waiting } = this.#session
    if (waiting.length === 0) return waiting
    // The prompt may have a message already.
    await setImmediate()
    return this.#pump.hasMessage ? waiting.filter((event) => !isForPeople(event)) : waiting
  }

  #onPrompted(isEmpty: boolean): void {
    const { signal, fail } = this.#options
    this.#endPrompt(isEmpty).catch((error: unknown) => signal.aborted || fail(error))
  }

  async #endPrompt(isEmpty: boolean): Promise<void> {
    if (isEmpty && !this.#session.isNew) await this.#continueStopped()
    this.#isPrompted = true
    this.#endIfOver()
  }

  /** Continues without a message. What another client, or an answer, has started in the meantime is enough. */
  async #continueStopped(): Promise<void> {
    const { conversation, waiting } = this.#session
    const { signal, options } = this.#options
    const { status, hasChanged, seq: after } = this.#turns
    if (hasChanged) return
    if (!(await hasWork(conversation, { status, waiting }, { signal }))) throw nothingLeft(conversation.id)
    if (await onlySubagentsWait(conversation, { status, waiting }, { signal })) return
    const body = withoutUndefined({ output_schema: outputSchemaOf(options) })
    await continueStopped(conversation, { status, after }, body, { signal })
    const { last_seq } = await conversation.get({ signal })
    this.#turns.readTo(last_seq)
  }

  /** A schema for a session that is continued belongs to its run. */
  async #post(content: UserInput['content'], isFirst: boolean): Promise<void> {
    const { options } = this.#options
    const { signal } = this.#posts
    const output_schema = isFirst && !this.#session.isNew ? outputSchemaOf(options) : undefined
    const body = { message: { role: 'user' as const, content }, run: true }
    const run_options = output_schema && { output_schema }
    const { seq } = await this.#conversation.postMessage({ ...body, ...(run_options && { run_options }) }, { signal })
    this.#turns.posted(seq)
  }

  #endIfOver(): void {
    const { signal, onOver, fail } = this.#options
    this.#isOver().then(
      (isOver) => isOver && onOver(),
      (error: unknown) => signal.aborted || fail(error),
    )
  }

  /** Returns false after another end than these: the end of a subagent then starts no run. */
  get #waitsForSubagents(): boolean {
    const mayAnswer = (status: Status) => this.#responder.mayAnswer(status)
    return AT_REST.has(this.#turns.status) && this.#background.continues(mayAnswer)
  }

  /**
   * Decides by the events so far. A run that did not read a message is followed by another one, which has begun by
   * then.
   */
  async #isOver(): Promise<boolean> {
    if (!this.#seemsOver()) return false
    if (!this.#turns.mayRunAgain) return true
    const { status, last_seq } = await this.#conversation.get({ signal: this.#options.signal })
    return status !== 'running' && last_seq <= this.#turns.seq && this.#seemsOver()
  }

  #seemsOver(): boolean {
    const { status, isSettled } = this.#turns
    return (
      this.#isPrompted &&
      isSettled &&
      !(this.#turns.isCutOff && this.#options.failsWithServer) &&
      !this.#waitsForSubagents &&
      !this.#responder.mayAnswer(status)
    )
  }
}

/** A function of the program comes before the person at the terminal. */
function createResponder(options: QueryOptions, deps: Omit<ToolAnswererDeps, 'tools'>): RequestResponder {
  const { interactiveApprover } = options
  const terminal = interactiveApprover ? createTerminalApprover(interactiveApprover) : undefined
  const decide = options.canUseTool ?? terminal?.canUseTool
  const answer = options.answerQuestions ?? terminal?.answerQuestions
  const tools = splitTools(options.tools).own
  const answerers = [
    ...(tools.length > 0 ? [new ToolAnswerer({ ...deps, tools })] : []),
    ...(decide ? [new ApprovalAnswerer(deps, decide)] : []),
    new QuestionAnswerer(deps, answer),
  ]
  return new RequestResponder(answerers, deps.fail)
}
