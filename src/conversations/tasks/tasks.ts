/** The tasks of one conversation: posted, cancelled and looked at by clients, and started one by one when their turn comes. */
import type { Event } from '../../contract/events/event.ts'
import { partsOf } from '../../contract/message.ts'
import { Problem } from '../../contract/problem.ts'
import type { PostTask, Runnable, Task, ListTasks } from '../../contract/task.ts'
import type { EventLog } from '../../events/event-log.ts'
import { uuid7 } from '../../lib/uuid7.ts'
import type { Idempotency, PostedKey } from '../idempotency/idempotency.ts'
import type { RunTaskCommand } from './jobs.ts'
import { createJobs } from './jobs.ts'
import { postOnce } from '../idempotency/posted-keys.ts'
import { redactParts } from '../config/redact-parts.ts'
import type { State } from '../state/state.ts'
import type {
  CancelTaskCommand,
  EndTaskCommand,
  PostTaskCommand,
  StartTaskCommand,
  TickTaskCommand,
} from './task-commands.ts'
import { findTask, listTasks, postedAt, tellPosted } from './task-log.ts'
import { currentTask, nextTasks } from './task-state.ts'

type TaskCommand = PostTaskCommand | StartTaskCommand | TickTaskCommand | EndTaskCommand | CancelTaskCommand

export type TasksDeps = {
  readonly log: EventLog
  readonly redact: (text: string) => string
  readonly runTaskCommand: RunTaskCommand
  /** As it holds now. */
  readonly state: () => State
  /** Runs the task when its turn among the commands has come; `advance` follows. */
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>
  /** Decides and stores; in turn only. */
  readonly carryOut: (command: TaskCommand) => Promise<readonly Event[]>
  /** As `carryOut`, for what ends a run; in turn only. */
  readonly endRun: (command: CancelTaskCommand) => Promise<void>
  /** Ends what the agent does; in turn only. Tools that do not heed it go on. Returns the log's head at the last model request, 0 when there was none. */
  readonly stopAgent: () => Promise<number>
  /** The open calls whose result comes from their tool. */
  readonly begunCalls: () => readonly string[]
  readonly onError: (error: unknown) => void
}

/** `post`, `cancel`, `get` and `list` throw a `Problem` for what cannot be done. */
export interface Tasks {
  /** The same key and body again, within a day, is the same task: it is answered as it was, and posted once. */
  post(request: PostTask, idempotency?: Idempotency): Promise<Task>
  /** Its work is over when this resolves. A task that was over before stays as it is. */
  cancel(taskId: string): Promise<Task>
  get(taskId: string): Promise<Task>
  list(query: ListTasks): Promise<{ items: Task[]; next_page_id: string | null }>
  /** Starts those whose turn has come; in turn only, after whatever may have changed that. */
  advance(): Promise<void>
  /** Ends all that runs beside the agent, and tells the log nothing: it goes on at the next start as after a crash. */
  close(): Promise<void>
}

export function createTasks(deps: TasksDeps): Tasks {
  const { log, redact, state, inTurn, carryOut } = deps
  /** Ends of jobs that are not in the log yet. What finds no room there stays here, or the task would never end. */
  const ends: (EndTaskCommand | CancelTaskCommand)[] = []

  const jobs = createJobs({
    runCommand: deps.runTaskCommand,
    // Not awaited: whoever stops the job has the turn that the tick waits for.
    onTick: (taskId, progress) => {
      inTurn(() => carryOut({ kind: 'tick_task', taskId, progress })).catch(deps.onError)
    },
    onEnd: async (taskId, end) => {
      ends.push({ kind: 'end_task', taskId, ...end })
      await inTurn(storeEnds).catch(deps.onError)
    },
  })

  async function postTask(title: string, runnable: Runnable, idempotency: Idempotency | undefined): Promise<Task> {
    // Not before the newest event: by its time a task is found in the log.
    const taskId = uuid7(Math.max(Date.now(), Date.parse(state().updatedAt) || 0))
    const command = { taskId, title: redact(title), runnable: redactRunnable(runnable, redact) }
    const [posted] = await carryOut({ kind: 'post_task', ...command, ...(idempotency && { idempotency }) })
    return tellPosted(posted as Parameters<typeof tellPosted>[0])
  }

  async function storeEnds(): Promise<void> {
    for (let end = ends[0]; end; end = ends[0]) {
      await carryOut(end)
      ends.shift()
    }
  }

  async function cancelNow(taskId: string): Promise<void> {
    const command = {
      kind: 'cancel_task',
      taskId,
      begun: [],
      requestedAt: 0,
      newRunId: uuid7(),
      now: Date.now(),
    } as const
    if (currentTask(state())?.id === taskId) {
      const requestedAt = await deps.stopAgent()
      return await deps.endRun({ ...command, requestedAt, begun: deps.begunCalls(), now: Date.now() })
    }
    const job = await jobs.stop(taskId)
    if (!job) return void (await carryOut(command))
    if (!job.isOver) ends.push({ ...command, ...(job.end.result && { result: job.end.result }) })
    await storeEnds()
  }

  return {
    post: ({ title, runnable }, idempotency) =>
      inTurn(() => {
        const again = async ({ answer }: PostedKey) => tellPosted(await postedAt(log, answer.seq))
        const make = () => postTask(title, runnable, idempotency)
        return postOnce(idempotency, { log, redact, remembered: state().postedKeys, again, make })
      }),
    cancel: async (taskId) => {
      await inTurn(() => cancelNow(taskId))
      return await findTask(log, state().tasks, taskId)
    },
    get: (taskId) => findTask(log, state().tasks, taskId),
    list: (query) => listTasks(log, state().tasks, query),
    async advance() {
      await storeEnds()
      for (const { id, seq } of nextTasks(state())) {
        const { runnable } = await postedAt(log, seq)
        const command = { kind: 'start_task', taskId: id, runnable, newRunId: uuid7() } as const
        const stored = await carryOut({ ...command, begun: deps.begunCalls() })
        if (stored.length > 0 && runnable.type !== 'AgentRun') jobs.start(id, runnable)
      }
    },
    close: () => jobs.stopAll(),
  }
}

/** With something else in its place the command would do something else. */
const HOLDS_SECRET = new Problem(
  'invalid_request',
  'runnable.command holds the value of a secret, and everybody who sees the conversation would see it; say $NAME instead.',
)

/** Images and times are left as they are. */
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
