/** The tasks of one conversation: clients post, cancel and read them; they start one by one in turn. */
import { messageOf, partsOf } from '../../contract/values/message.ts'
import { Problem } from '../../contract/problem.ts'
import type { PostTask, Runnable, Task, ListTasks } from '../../contract/values/task.ts'
import type { EventLog } from '../../events/event-log.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { Idempotency, PostedKey } from '../../state/idempotency.ts'
import type { RunTaskCommand } from './background-jobs.ts'
import { BackgroundJobs } from './background-jobs.ts'
import type { PromptHooks } from '../../state/hook-decisions.ts'
import type { Feature } from '../agents/feature.ts'
import type { ConversationHooks } from '../hooks/conversation-hooks.ts'
import { findEarlier } from '../../state/idempotency.ts'
import { postOnce } from '../../idempotency/posted-keys.ts'
import { redactParts } from '../config/redact-parts.ts'
import type { LiveState } from '../live/live-state.ts'
import type { CancelTaskIntent, EndTaskIntent } from '../../state/task-intents.ts'
import type { Inbox } from '../live/inbox.ts'
import { refuseRewound } from '../../state/refusals.ts'
import { findTask, listTasks, postedAt, postedView } from './task-log.ts'
import { currentTask, nextTasks } from '../../state/task-state.ts'

/**
 * What tasks need from the conversation's actor. Call all members except `enqueue` and `reportUnlessClosed` in turn
 * only.
 */
export type TaskActor = Pick<Inbox, 'enqueue' | 'apply' | 'applyEnd'> & {
  /**
   * Stops the agent. Tools that ignore the signal continue. Returns the log's head at the last model request, or 0 if
   * there was none.
   */
  stopAgent(): Promise<number>
  /** The open calls whose tool writes the result. */
  begunCalls(): readonly string[]
  readonly reportUnlessClosed: (error: unknown) => void
}

export type TasksDeps = {
  readonly log: EventLog
  readonly state: LiveState
  readonly redact: (text: string) => string
  readonly hooks: Feature<ConversationHooks>
  readonly runTaskCommand: RunTaskCommand
  readonly leaving: AbortSignal | undefined
  readonly actor: TaskActor
}

/** `post`, `cancel`, `get` and `list` throw a `Problem` for an invalid request. */
export class Tasks {
  readonly #deps: TasksDeps
  readonly #actor: TaskActor
  readonly #jobs: BackgroundJobs
  /**
   * Ends of jobs that are not in the log yet. An end that cannot be stored stays here, otherwise the task would never
   * end.
   */
  readonly #ends: (EndTaskIntent | CancelTaskIntent)[] = []

  constructor(deps: TasksDeps) {
    this.#deps = deps
    this.#actor = deps.actor
    this.#jobs = new BackgroundJobs({
      runCommand: deps.runTaskCommand,
      // It is not awaited: the caller that stops the job holds the turn that the tick waits for.
      onTick: (taskId, progress) => {
        const tick = this.#actor.enqueue(() => this.#actor.apply({ kind: 'tick_task', taskId, progress }))
        tick.catch((error: unknown) => this.#actor.reportUnlessClosed(error))
      },
      onEnd: async (taskId, end) => {
        this.#ends.push({ kind: 'end_task', taskId, ...end })
        const storing = this.#actor.enqueue(() => this.#storeEnds())
        await storing.catch((error: unknown) => this.#actor.reportUnlessClosed(error))
      },
    })
  }

  /** Idempotent: the same key and body within a day returns the same task, and it is posted once. */
  async post(postTask: PostTask, idempotency?: Idempotency): Promise<Task> {
    const { title, after_seq: afterSeq } = postTask
    const runnable = storedForm(postTask.runnable)
    const task = { title, runnable, afterSeq }
    const { hooks, state } = this.#deps
    const prompts = hooks.current
    if (runnable.type !== 'AgentRun' || !prompts?.readsPrompts()) return await this.#post(task, idempotency)
    const findTask = async () =>
      idempotency && findEarlier(state.current.postedKeys, idempotency, Date.now())
        ? await this.#post(task, idempotency)
        : undefined
    const parts = partsOf(runnable.message.content)
    const post = (promptHooks: PromptHooks) => {
      const context = promptHooks.context === undefined ? [] : [{ type: 'text' as const, text: promptHooks.context }]
      const message = { ...runnable.message, content: [...parts, ...context] }
      return this.#post({ ...task, runnable: { ...runnable, message } }, idempotency, promptHooks)
    }
    return (await findTask()) ?? (await prompts.withPrompt(parts, post, findTask))
  }

  #post({ title, runnable, afterSeq }: StoredTask, idempotency?: Idempotency, hooks?: PromptHooks): Promise<Task> {
    const { log, state, redact } = this.#deps
    const make = async (): Promise<Task> => {
      if (afterSeq !== undefined) refuseRewound(state.current, afterSeq)
      // Use at least the time of the newest event: a task is looked up in the log by its time.
      const taskId = uuid7(Math.max(Date.now(), Date.parse(state.current.updatedAt) || 0))
      const task = { taskId, title: redact(title), runnable: redactRunnable(runnable, redact) }
      const more = { ...(idempotency && { idempotency }), ...(hooks && { hooks }) }
      const postedTask = (await this.#actor.apply({ kind: 'post_task', ...task, ...more })).at(-1)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the event of this intent
      return postedView(postedTask as Parameters<typeof postedView>[0])
    }
    const again = async ({ answer }: PostedKey) => postedView(await postedAt(log, answer.seq))
    return this.#actor.enqueue(() =>
      postOnce(idempotency, { log, redact, remembered: state.current.postedKeys, again, make }),
    )
  }

  /** Resolves when the task's work has stopped. A task that had already ended does not change. */
  async cancel(taskId: string): Promise<Task> {
    await this.#actor.enqueue(() => this.#cancelNow(taskId))
    return await this.get(taskId)
  }

  /** Cancels a background job; the work of the agent continues. Only within an enqueued action. */
  async cancelNow(taskId: string): Promise<void> {
    await this.#cancelNow(taskId)
  }

  get(taskId: string): Promise<Task> {
    return findTask(this.#deps.log, this.#deps.state.current.tasks, taskId)
  }

  list(query: ListTasks): Promise<{ items: Task[]; next_page_id: string | null }> {
    return listTasks(this.#deps.log, this.#deps.state.current.tasks, query)
  }

  /** Starts the tasks that are next; call it in turn, after each change that may allow it. */
  async advance(): Promise<void> {
    await this.#storeEnds()
    if (this.#deps.leaving?.aborted) return
    for (const { id, seq } of nextTasks(this.#deps.state.current)) {
      const { runnable } = await postedAt(this.#deps.log, seq)
      const intent = { kind: 'start_task', taskId: id, runnable, newRunId: uuid7() } as const
      const storedEvents = await this.#actor.apply({ ...intent, begun: this.#actor.begunCalls() })
      if (storedEvents.length > 0 && runnable.type !== 'AgentRun') this.#jobs.start(id, runnable)
    }
  }

  /** Ends all background jobs and logs nothing: they continue at the next start as after a crash. */
  close(): Promise<void> {
    return this.#jobs.stopAll()
  }

  async #storeEnds(): Promise<void> {
    for (let end = this.#ends[0]; end; end = this.#ends[0]) {
      // Hooks that watch the log have to be there before it has the end.
      void this.#deps.hooks.current
      await this.#actor.apply(end)
      this.#ends.shift()
    }
  }

  async #cancelNow(taskId: string): Promise<void> {
    const intent = {
      kind: 'cancel_task',
      taskId,
      begun: [],
      requestedAt: 0,
      newRunId: uuid7(),
      now: Date.now(),
    } as const
    if (currentTask(this.#deps.state.current)?.id === taskId) {
      const requestedAt = await this.#actor.stopAgent()
      const begunCalls = this.#actor.begunCalls()
      return void (await this.#actor.applyEnd({ ...intent, requestedAt, begun: begunCalls, now: Date.now() }))
    }
    const job = await this.#jobs.stop(taskId)
    if (!job) return void (await this.#actor.apply(intent))
    if (!job.isOver) this.#ends.push({ ...intent, ...(job.end.result && { result: job.end.result }) })
    await this.#storeEnds()
  }
}

/** A redacted command would be a different command. */
const HOLDS_SECRET = new Problem(
  'invalid_request',
  'runnable.command contains the value of a secret, which everyone who can read the conversation would see; use $NAME instead.',
)

type StoredTask = Pick<Task, 'title' | 'runnable'> & { readonly afterSeq: PostTask['after_seq'] }

const storedForm = (runnable: PostTask['runnable']): Runnable =>
  runnable.type === 'AgentRun' ? { ...runnable, message: messageOf(runnable.message) } : runnable

/** Images and times are left unchanged. */
function redactRunnable(runnable: Runnable, redact: (text: string) => string): Runnable {
  if (runnable.type === 'Ticker') return runnable
  if (runnable.type === 'Command') {
    if (redact(runnable.command) !== runnable.command) throw HOLDS_SECRET
    return runnable
  }
  const { content, sender, role } = runnable.message
  const message = { role, content: redactParts(partsOf(content), redact) }
  return { type: 'AgentRun', message: { ...message, ...(sender !== undefined && { sender: redact(sender) }) } }
}
